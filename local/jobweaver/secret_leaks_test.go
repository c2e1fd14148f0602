package main

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jobweaver/jobweaver/local/dev"
	"github.com/jobweaver/jobweaver/shared/apikey"
	"github.com/jobweaver/jobweaver/shared/telemetry"
)

// The places that are searched. The contents of a job are shown to clients that may read it, and are stored. Secrets
// must not be in any of the places.
var (
	everywhere = []string{"log", "metrics", "answers", "command line", "disk"}
	forOthers  = []string{"log", "metrics"}
)

// canaries runs an installation, and collects the secrets, the contents of jobs, and all output.
type canaries struct {
	t       *testing.T
	url     string
	admin   string
	outside *httptest.Server

	mu      sync.Mutex
	output  map[string]*bytes.Buffer // by place
	secrets map[string]string
	carried map[string]string
	order   chan []byte
}

// Write receives the log.
func (c *canaries) Write(text []byte) (int, error) {
	c.note("log", text)
	return len(text), nil
}

func (c *canaries) note(place string, text []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.output[place] == nil {
		c.output[place] = &bytes.Buffer{}
	}
	c.output[place].Write(append(text, '\n'))
}

// secret makes a secret that must not appear anywhere.
func (c *canaries) secret(what string) string {
	c.secrets[what] = "canary" + strings.ReplaceAll(what, " ", "") + apikey.New().ID()
	return c.secrets[what]
}

// load makes a text for the contents of a job.
func (c *canaries) load(what string) string {
	c.carried[what] = "burden" + strings.ReplaceAll(what, " ", "") + apikey.New().ID()
	return c.carried[what]
}

func (c *canaries) key(what string) string {
	text := apikey.New().Reveal()
	c.secrets[what] = text[len("jw_"):][13:] // the id of the key is not secret
	return text
}

func (c *canaries) signing(what string) string {
	return "whsec_" + base64.StdEncoding.EncodeToString([]byte(c.secret(what)+strings.Repeat("x", 10)))
}

func TestNoSecretIsInOutputOrStorage(t *testing.T) {
	c := &canaries{
		t: t, output: map[string]*bytes.Buffer{}, secrets: map[string]string{}, carried: map[string]string{},
		order: make(chan []byte, 1),
	}
	c.outside = httptest.NewServer(http.HandlerFunc(c.answer))
	t.Cleanup(c.outside.Close)
	c.set()
	former := slog.Default()
	t.Cleanup(func() { slog.SetDefault(former) })
	logger, err := telemetry.NewLogger(c, "debug", "json")
	if err != nil {
		t.Fatal(err)
	}
	telemetry.SetDefault(logger)
	o := dev.Options{
		Dir: t.TempDir(), Kafka: "embedded", Queues: []string{"default"}, Out: io.Discard,
	}
	err = dev.Run(t.Context(), o, func(ctx context.Context, at string) error {
		c.url = at
		t.Setenv("JOBWEAVER_URL", at)
		c.visit(ctx)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	slog.Debug("planted", "error", fmt.Errorf("read %s", c.secret("planted in the log")))
	c.note("answers", []byte(c.secret("planted in the answers")))
	planted := base64.StdEncoding.EncodeToString([]byte("ab" + c.secret("planted on disk")))
	if err := os.WriteFile(filepath.Join(o.Dir, "planted"), []byte(planted), 0o600); err != nil {
		t.Fatal(err)
	}
	slog.Info("planted", "payload", c.load("planted in the log"))
	c.readDisk(o.Dir)
	for what, canary := range c.secrets {
		c.search("the secret "+what, canary, everywhere)
	}
	for what, canary := range c.carried {
		c.search("the load "+what, canary, forOthers)
	}
}

// set sets every secret setting of an installation without TLS.
func (c *canaries) set() {
	queries := filepath.Join(c.t.TempDir(), "queries.json")
	if err := os.WriteFile(queries, []byte(`{"one": {"sql": "select 1"}}`), 0o600); err != nil {
		c.t.Fatal(err)
	}
	c.admin = c.key("bootstrap key")
	for name, value := range map[string]string{
		"AUTH": "on", "BOOTSTRAP_API_KEY": c.admin, "JOBWEAVER_API_KEY": c.admin,
		"WEBHOOK_SECRETS":     c.signing("webhook") + "," + c.signing("webhook older"),
		"CALLBACK_SECRETS":    c.signing("callback"),
		"SMTP_HOST":           "127.0.0.1",
		"SMTP_PORT":           "1",
		"SMTP_TLS":            "none",
		"SMTP_USERNAME":       "worker",
		"SMTP_PASSWORD":       c.secret("smtp"),
		"SMTP_FROM":           "a@b.example",
		"REPORT_QUERIES":      queries,
		"REPORT_DATABASE_URL": "postgres://u:" + c.secret("report") + "%2F@127.0.0.1:1/x",
		"OIDC_ISSUER":         "https://127.0.0.1:1",
		"OIDC_AUDIENCE":       "jobweaver",
	} {
		c.t.Setenv(name, value)
	}
}

// answer serves as an outside system.
func (c *canaries) answer(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	switch r.URL.Path {
	case "/external":
		c.order <- body
		w.WriteHeader(http.StatusAccepted)
	case "/ended":
	case "/gone":
		w.WriteHeader(http.StatusGone)
	default:
		w.WriteHeader(http.StatusNotFound)
		_, _ = w.Write(body) // it is repeated in the message of the failure
	}
}

func (c *canaries) visit(ctx context.Context) {
	for { // the key is stored as soon as the database answers
		if status, _ := c.ask(http.MethodGet, "/api/me", "", "X-Api-Key", c.admin); status == http.StatusOK {
			break
		}
		select {
		case <-ctx.Done():
			c.t.Fatal("the bootstrap key is not accepted")
		case <-time.After(200 * time.Millisecond): // each try is a failure, of 60 a minute
		}
	}
	c.comeIn()
	c.runJobs()
	c.commandLine()
	_, metrics := c.ask(http.MethodGet, "/metrics", "", "X-Api-Key", c.admin)
	if !bytes.Contains(metrics, []byte("events_handled_total")) {
		c.t.Errorf("metrics are %s", metrics)
	}
	c.note("metrics", metrics)
	for _, path := range []string{"/debug/pprof/", "/debug/vars", "/debug/pprof/cmdline", "/api/openapi.yaml", "/api/health", "/"} {
		c.ask(http.MethodGet, path, "", "X-Api-Key", c.admin)
	}
}

// ask sends a request and records the response with its headers.
func (c *canaries) ask(method, path, body string, headers ...string) (status int, answer []byte) {
	c.t.Helper()
	request, err := http.NewRequestWithContext(c.t.Context(), method, c.url+path, strings.NewReader(body))
	if err != nil {
		c.t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/json")
	for i := 0; i < len(headers); i += 2 {
		request.Header.Set(headers[i], headers[i+1])
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		c.t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	if answer, err = io.ReadAll(response.Body); err != nil {
		c.t.Fatal(err)
	}
	if method != http.MethodPost || path != "/api/keys" { // the response has the key
		c.note("answers", fmt.Appendf(answer, "\n%v", response.Header))
	}
	return response.StatusCode, answer
}

// comeIn tries invalid and revoked keys.
func (c *canaries) comeIn() {
	_, made := c.ask(http.MethodPost, "/api/keys", `{"name": "n", "ownerId": "acme", "roles": ["read"]}`, "X-Api-Key", c.admin)
	var revoked struct{ KeyID, Key string }
	if err := json.Unmarshal(made, &revoked); err != nil || len(revoked.Key) < 30 {
		c.t.Fatalf("made %s", made)
	}
	c.secrets["revoked key"] = revoked.Key[len("jw_"):][13:]
	c.ask(http.MethodDelete, "/api/keys/"+revoked.KeyID, "", "X-Api-Key", c.admin)
	token := func(part string) string { return base64.RawURLEncoding.EncodeToString([]byte(part)) }
	jwt := token(`{"alg":"RS256","kid":"k"}`) + "." + token(`{"iss":"https://127.0.0.1:1","sub":"`+c.secret("claim")+`"}`) +
		"." + token(c.secret("signature"))
	for name, value := range map[string]string{
		"a right key, twice": c.admin + " " + c.admin, "a wrong key": c.key("wrong key"), "no key": "jw_" + c.secret("no key"),
		"a revoked key": revoked.Key, "a token": jwt, "half a token": jwt[:len(jwt)/2],
	} {
		for _, header := range [][]string{{"Authorization", "Bearer " + value}, {"X-Api-Key", value}, {"Authorization", "Basic " + value}} {
			if status, answer := c.ask(http.MethodGet, "/api/jobs", "", header...); status < 400 {
				c.t.Errorf("%s is answered %d %s", name, status, answer)
			}
		}
	}
	c.ask(http.MethodGet, "/api/jobs?api_key="+c.secret("query")+"&access_token="+c.admin, "", "Cookie", "key="+c.secret("cookie"))
	c.ask(http.MethodGet, "/api/jobs/"+c.secret("path"), "", "Authorization", c.secret("no scheme"))
	body := `{"jobId": "0199a5d0-0000-7000-8000-000000000001", "attempt": 1, "status": "COMPLETED", "output": "` + c.load("refused callback") + `"}`
	c.ask(http.MethodPost, "/api/jobs/callback", body, "X-Callback-Secret", c.secret("wrong callback secret"))
	c.ask(http.MethodPost, "/api/jobs/callback", body, "webhook-id", "m", "webhook-timestamp", "1", "webhook-signature", "v1,"+c.secret("wrong signature"))
}

// runJobs makes jobs of all types fail. Only clients that may read the jobs must see their payloads, URLs and
// responses.
func (c *canaries) runJobs() {
	accepted := 0
	for _, job := range []string{
		fmt.Sprintf(`"jobType": "FUNCTION", "payload": {"url": "%s/x?token=%s", "data": %q}, "callbackUrl": "%s/ended?token=%s"`,
			c.outside.URL, c.load("query"), c.load("data"), c.outside.URL, c.load("callback url")),
		fmt.Sprintf(`"jobType": "SIMULATION", "payload": {"steps": [{"type": "HTTP_CALL", "url": "http://127.0.0.1:1/?token=%s"}]},
			"callbackUrl": "%s/gone?token=%s"`, c.load("refused query"), c.outside.URL, c.load("gone")),
		fmt.Sprintf(`"jobType": "EMAIL", "payload": {"to": ["%s@example.org"], "subject": %q, "text": %q}`,
			c.load("address"), c.load("subject"), c.load("text")),
		`"jobType": "REPORT", "payload": {"title": "` + c.load("title") + `", "format": "csv", "query": "one", "parameters": {}}`,
		fmt.Sprintf(`"jobType": "FUNCTION", "payload": {"url": "http://u:%s@127.0.0.1:1/", "data": 1}`, c.load("userinfo")),
		`"jobType": "` + c.load("a type that is none") + `", "payload": {}}{`,
		fmt.Sprintf(`"jobType": "EMAIL", "payload": {}, "callbackUrl": "http://u:%s@127.0.0.1:1/"`, c.load("userinfo of a callback")),
	} {
		if id := c.submit(job); id != "" {
			c.follow(id)
			accepted++
		}
	}
	if accepted != 4 {
		c.t.Errorf("%d jobs were accepted", accepted)
	}
	id := c.submit(fmt.Sprintf(`"jobType": "EXTERNAL", "payload": {"url": "%s/external", "data": %q}`, c.outside.URL, c.load("order")))
	var order struct{ Callback struct{ Secret string } }
	var sent []byte
	select {
	case sent = <-c.order:
	case <-time.After(time.Minute):
		c.t.Fatal("nothing was ordered outside")
	}
	if err := json.Unmarshal(sent, &order); err != nil || order.Callback.Secret == "" {
		c.t.Fatalf("ordered %+v, %v", order, err)
	}
	c.secrets["of an attempt"] = strings.TrimPrefix(order.Callback.Secret, "whsec_")
	body := `{"jobId": "` + id + `", "attempt": 1, "status": "%s", "output": "` + c.load("output") + `"}`
	c.ask(http.MethodPost, "/api/jobs/callback", fmt.Sprintf(body, "NONE"), "X-Callback-Secret", order.Callback.Secret)
	status, answer := c.ask(http.MethodPost, "/api/jobs/callback", fmt.Sprintf(body, "COMPLETED"), "X-Callback-Secret", order.Callback.Secret)
	if status != http.StatusOK {
		c.t.Errorf("the callback is answered %s", answer)
	}
	c.follow(id)
}

func (c *canaries) submit(job string) string {
	status, answer := c.ask(http.MethodPost, "/api/jobs", `{"maxRetryCount": 0, `+job+`}`, "X-Api-Key", c.admin)
	if status != http.StatusAccepted {
		return ""
	}
	var made struct{ JobID string }
	if err := json.Unmarshal(answer, &made); err != nil {
		c.t.Fatal(err)
	}
	return made.JobID
}

// follow reads a job until it has ended.
func (c *canaries) follow(id string) {
	for _, verb := range []string{"watch", "get", "logs", "deliveries get"} {
		c.command(append(strings.Fields(verb), id)...)
	}
}

func (c *canaries) command(args ...string) {
	printed, err := run(c.t, "", args...)
	c.note("command line", fmt.Appendf([]byte(printed), "%v", err))
}

func (c *canaries) commandLine() {
	for _, verb := range []string{"list", "keys list", "keys me", "workers", "stats", "audit", "deliveries list", "types", "--help", "dev --help"} {
		c.command(strings.Fields(verb)...)
	}
	c.t.Setenv("JOBWEAVER_URL", "http://u:"+c.secret("the API's address")+"@127.0.0.1:1")
	c.command("list")
	c.t.Setenv("JOBWEAVER_URL", c.url)
	c.t.Setenv("JOBWEAVER_API_KEY", c.key("wrong key of the command line"))
	c.command("list")
	c.t.Setenv("JOBWEAVER_CALLBACK_SECRET", c.secret("wrong secret of the command line"))
	c.command("callback", "0199a5d0-0000-7000-8000-000000000001", "1", "completed")
	for _, address := range []string{"postgres://u:%s@127.0.0.1:1/d", "postgres://u:%%x%s@h/d", "postgres://u:x/%s@h/d", "password=%s port=x"} {
		c.t.Setenv("DATABASE_URL", fmt.Sprintf(address, c.secret("database "+fmt.Sprint(len(address)))))
		c.command("migrate", "--wait", "1s")
	}
}

// readDisk reads all that was stored: the databases with their WAL, and the records of the broker.
func (c *canaries) readDisk(dir string) {
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return err
		}
		text, err := os.ReadFile(path)
		if filepath.Base(path) == "postgres.log" {
			c.note("log", text)
		}
		c.note("disk", text)
		return err
	})
	if err != nil {
		c.t.Fatal(err)
	}
}

// search searches for a canary in all its forms. One that was stored on purpose must be found.
func (c *canaries) search(what, canary string, places []string) {
	c.t.Helper()
	found := ""
	for _, place := range places {
		if c.output[place].Len() == 0 {
			c.t.Errorf("there is nothing in the %s", place)
		}
		for _, form := range forms(canary) {
			if bytes.Contains(c.output[place].Bytes(), form) {
				found = place
			}
		}
	}
	_, want, planted := strings.Cut(what, " planted ")
	switch {
	case planted && !strings.Contains(want, found) || planted && found == "":
		c.t.Errorf("%s is found in %q: the search does not work", what, found)
	case !planted && found != "":
		c.t.Errorf("%s is found in the %s", what, found)
	}
}

// forms returns encodings of the middle of a text, because its ends may be cut off.
func forms(canary string) [][]byte {
	middle := canary[2 : len(canary)-2]
	all := [][]byte{[]byte(middle), []byte(url.QueryEscape(middle)), []byte(hex.EncodeToString([]byte(middle)))}
	for shift := range 3 {
		text := base64.RawStdEncoding.EncodeToString(append(make([]byte, shift), middle...))
		all = append(all, []byte(text[(shift*8+5)/6:len(text)-1])) // the first and the last character contain bits of the surrounding text
	}
	return all
}
