package examples

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/jobweaver/jobweaver/local/dev"
	"github.com/jobweaver/jobweaver/shared/client"
	secrets "github.com/jobweaver/jobweaver/shared/secret"
	"github.com/jobweaver/jobweaver/shared/webhook"
)

// The functions of all languages run as processes beside an installation.
func TestJobOfTypeFunctionRunsInEachLanguage(t *testing.T) {
	t.Parallel()
	o := dev.Options{
		Dir: t.TempDir(), Kafka: "embedded", Queues: []string{"default"}, Out: t.Output(), Metrics: prometheus.NewRegistry(),
	}
	// The installation signs with the secret in this file.
	if err := os.WriteFile(filepath.Join(o.Dir, "webhook.secret"), []byte(secret), 0o600); err != nil {
		t.Fatal(err)
	}
	err := dev.Run(t.Context(), o, func(_ context.Context, url string) error {
		t.Run("the request", func(t *testing.T) { isAsThePageShowsIt(t, client.New(url, "")) })
		t.Run("each", func(t *testing.T) {
			for language := range languages {
				t.Run(language, func(t *testing.T) {
					t.Parallel()
					mayRun(t, language)
					isDone(t, client.New(url, ""), language)
				})
			}
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func isDone(t *testing.T, api *client.Client, language string) {
	keys, err := webhook.NewOutgoing(webhook.Config{Secrets: secrets.AllOf(secret)}, webhook.Call)
	if err != nil {
		t.Fatal(err)
	}
	right := function(t, language, "WEBHOOK_SECRET="+keys.Secrets("")[0])
	wrong := function(t, language, "WEBHOOK_SECRET="+another)
	for name, c := range map[string]struct {
		url, data string
		want      string // its status and output, or its error code
	}{
		"at once":                        {right.url, `{"text": "one two three"}`, `COMPLETED {"words":3}`},
		"later":                          {right.url + "/later", `{"text": "one two three"}`, `COMPLETED {"words":3}`},
		"at once, with bad data":         {right.url, `{"text": 7}`, `FAILED WORDS.NO_TEXT`},
		"later, with bad data":           {right.url + "/later", `{"text": 7}`, `FAILED WORDS.NO_TEXT`},
		"at once, by a wrong signature":  {wrong.url, `{"text": "one"}`, `FAILED FUNCTION.BAD_REQUEST`},
		"later, by a wrong signature":    {wrong.url + "/later", `{"text": "one"}`, `FAILED FUNCTION.BAD_REQUEST`},
		"at an address where nothing is": {right.url + "/nothing", `{"text": "one"}`, `FAILED`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := ended(t.Context(), api, job(c.url, c.data))
			if err != nil {
				t.Fatal(err)
			}
			result := got.Status
			if got.Status == "COMPLETED" {
				result += " " + compact(got.Output)
			} else if c.want != "FAILED" {
				result += " " + got.LastError.ErrorCode
			}
			if result != c.want || got.Attempt != 1 {
				t.Errorf("it ended as %s", got.Raw)
			}
		})
	}
	for _, path := range []string{"", "/later"} {
		t.Run("when it is free again, at /"+path, func(t *testing.T) {
			t.Parallel()
			waitsForAPlace(t, api, function(t, language, "AT_ONCE=1"), path)
		})
	}
}

// waitsForAPlace checks that a job whose function is busy is retried after Retry-After, and completes.
func waitsForAPlace(t *testing.T, api *client.Client, p *program, path string) {
	free := occupy(t, p)
	// Each retry comes after a second, and a busy machine may need more of them than by default until the place is free.
	body := strings.Replace(job(p.url+path, `{"text": "one"}`), "{", `{"maxRetryCount": 100, `, 1)
	accepted, err := api.SubmitJSON(t.Context(), []byte(body))
	if err != nil {
		t.Fatal(err)
	}
	for {
		got, err := api.Get(t.Context(), accepted.JobID, 0)
		if err != nil {
			t.Fatal(err)
		}
		if got.LastError != nil {
			if got.LastError.ErrorCode != "FUNCTION.BUSY" || got.Terminal() {
				t.Errorf("while it is busy: %s", got.Raw)
			}
			break
		}
		<-time.After(20 * time.Millisecond)
	}
	free()
	got, err := client.Follow(t.Context(), api, accepted.JobID, func(*client.Job) {})
	if err != nil {
		t.Fatal(err)
	}
	var waited time.Duration // the longest delay
	for i, move := range got.History[:len(got.History)-1] {
		if move.To == "RETRYING" {
			waited = max(waited, got.History[i+1].At.Sub(move.At))
		}
	}
	// The first retry of the job's policy would follow after 10 s.
	if got.Status != "COMPLETED" || got.Attempt < 2 || waited == 0 || waited >= 10*time.Second {
		t.Errorf("it waited for %s, and ended as %s", waited, got.Raw)
	}
}

// captured matches the request on the page.
var captured = regexp.MustCompile("(?s)<!-- captured -->\n```http\n(.*?)\n\n(.*?)\n```\n")

// isAsThePageShowsIt compares the names of the headers, and the body, with the page.
func isAsThePageShowsIt(t *testing.T, api *client.Client) {
	requests := make(chan string, 1)
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		text, err := httputil.DumpRequest(r, true)
		if err != nil {
			t.Error(err)
		}
		requests <- strings.ReplaceAll(string(text), "\r\n", "\n")
	}))
	defer server.Close()
	if _, err := ended(t.Context(), api, job(server.URL, `{"text": "one two three"}`)); err != nil {
		t.Fatal(err)
	}
	head, body, _ := strings.Cut(<-requests, "\n\n")
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	shown := captured.FindStringSubmatch(string(text))
	if shown == nil {
		t.Fatal("the page shows no request")
	}
	if got, want := names(head), names(shown[1]); !slices.Equal(got, want) || body != shown[2] {
		t.Errorf("it has %v and %s, the page has %v and %s", got, body, want, shown[2])
	}
}

// names returns the lines of a request's head without the values of the headers, sorted.
func names(head string) []string {
	lines := strings.Split(head, "\n")
	for i := range lines {
		lines[i], _, _ = strings.Cut(lines[i], ": ")
	}
	slices.Sort(lines)
	return lines
}

func job(url, data string) string {
	return fmt.Sprintf(`{"jobType": "FUNCTION", "payload": {"url": %q, "data": %s}}`, url, data)
}
