package examples

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/jobweaver/jobweaver/local/dev"
	"github.com/jobweaver/jobweaver/shared/client"
	secrets "github.com/jobweaver/jobweaver/shared/secret"
	"github.com/jobweaver/jobweaver/shared/webhook"
)

// frameworks start the function of each web framework, in its folder.
var frameworks = map[string]func(t *testing.T) []string{
	"nethttp": func(t *testing.T) []string { return []string{binary(t, "function-nethttp")} },
	"express": func(*testing.T) []string { return []string{"node", "main.js"} },
	"next": func(*testing.T) []string {
		return []string{"node_modules/.bin/next", "start", "--hostname", "127.0.0.1"}
	},
	"fastapi": func(*testing.T) []string { return []string{".venv/bin/python", "main.py"} },
	"django":  func(*testing.T) []string { return []string{".venv/bin/python", "main.py"} },
	"spring": func(*testing.T) []string {
		return []string{"java", "-XX:TieredStopAtLevel=1", "-cp", "target/classes:src/main/resources:target/lib/*", "example.Application"}
	},
}

func TestFunctionOfEachFrameworkChargesOnce(t *testing.T) {
	t.Parallel()
	o := dev.Options{
		Dir: t.TempDir(), Kafka: "embedded", Queues: []string{"default"}, Out: t.Output(), Metrics: prometheus.NewRegistry(),
	}
	if err := os.WriteFile(filepath.Join(o.Dir, "webhook.secret"), []byte(secret), 0o600); err != nil {
		t.Fatal(err)
	}
	keys, err := webhook.NewOutgoing(webhook.Config{Secrets: secrets.AllOf(secret)}, webhook.Call)
	if err != nil {
		t.Fatal(err)
	}
	key := keys.Secrets("")[0]
	err = dev.Run(t.Context(), o, func(_ context.Context, url string) error {
		t.Run("each", func(t *testing.T) {
			for framework, command := range frameworks {
				t.Run(framework, func(t *testing.T) {
					t.Parallel()
					if framework != "nethttp" {
						mayRun(t, framework)
					}
					p := start(t, "function-"+framework, command(t), "WEBHOOK_SECRET="+key, "RECEIPTS="+t.TempDir(), "NEXT_TELEMETRY_DISABLED=1")
					chargesForJobs(t, client.New(url, ""), p.url+"/charge")
					chargesOnce(t, p.url+"/charge", key)
					refusesWrongData(t, p.url+"/charge", key)
					refusesOthers(t, p.url+"/charge", key)
				})
			}
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

const order = `{"order": "Bücher 📚", "cents": 900}`

// chargesForJobs runs jobs: one as it should be, one whose data is wrong, and one of an owner whose key is another.
func chargesForJobs(t *testing.T, api *client.Client, url string) {
	t.Helper()
	type charge struct{ Receipt, Order string }
	for name, c := range map[string]struct{ request, want string }{
		"right":               {job(url, order), "COMPLETED"},
		"with wrong data":     {job(url, `{"order": 17}`), "SHOP.BAD_ORDER"},
		"without data":        {fmt.Sprintf(`{"jobType": "FUNCTION", "payload": {"url": %q}}`, url), "SHOP.BAD_ORDER"},
		"signed for an owner": {strings.Replace(job(url, order), "{", `{"ownerId": "acme", `, 1), "SHOP.BAD_SIGNATURE"},
	} {
		got, err := ended(t.Context(), api, c.request)
		if err != nil {
			t.Fatal(err)
		}
		var made charge
		is := got.Status
		if got.LastError != nil {
			is = got.LastError.ErrorCode
		} else if err := json.Unmarshal(got.Output, &made); err != nil || made.Receipt == "" || made.Order != "Bücher 📚" {
			t.Errorf("%s: the output is %s", name, got.Output)
		}
		if is != c.want || got.Attempt != 1 {
			t.Errorf("%s: it ended as %s", name, got.Raw)
		}
	}
}

// attempt sends an attempt of a job.
func attempt(t *testing.T, url, key, id, body string, at time.Time, change func(http.Header)) reply {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	signer, err := webhook.NewSigner([]string{key})
	if err != nil {
		t.Fatal(err)
	}
	signer.Sign(r.Header, id, at, []byte(body))
	r.Header.Set("Content-Type", "application/json")
	change(r.Header)
	return send(t, r)
}

func unchanged(http.Header) {}

// chargesOnce sends attempts of one job, some of them at the same time, and one of another job.
func chargesOnce(t *testing.T, url, key string) {
	t.Helper()
	one, other := uuid.NewString(), uuid.NewString()
	replies := make([]reply, 6)
	var sent sync.WaitGroup
	for i := range replies[:5] {
		sent.Go(func() { replies[i] = attempt(t, url, key, fmt.Sprint(one, ".", i+1), order, time.Now(), unchanged) })
	}
	sent.Wait()
	replies[5] = attempt(t, url, key, one+".6", order, time.Now(), unchanged)
	for _, got := range replies {
		if got.status != http.StatusOK || got.body != replies[0].body {
			t.Errorf("attempts of a job are answered %d %s and %d %s", replies[0].status, replies[0].body, got.status, got.body)
		}
	}
	if got := attempt(t, url, key, other+".1", order, time.Now(), unchanged); got.status != http.StatusOK || got.body == replies[0].body {
		t.Errorf("another job is answered %d %s", got.status, got.body)
	}
}

// refusesWrongData sends data that is no order.
func refusesWrongData(t *testing.T, url, key string) {
	t.Helper()
	for _, body := range []string{"", "null", "17", "[]", "{}", `{"order": "17"}`, `{"order": "17", "cents": "900 cents"}`} {
		got := attempt(t, url, key, uuid.NewString()+".1", body, time.Now(), unchanged)
		if got.status != http.StatusBadRequest || got.code() != "SHOP.BAD_ORDER" {
			t.Errorf("%s is answered %d %s", body, got.status, got.body)
		}
	}
}

// refusesOthers sends what JobWeaver has not signed.
func refusesOthers(t *testing.T, url, key string) {
	t.Helper()
	id := uuid.NewString() + ".1"
	for name, c := range map[string]struct {
		key    string
		age    time.Duration
		change func(http.Header)
	}{
		"with another key":          {another, 0, unchanged},
		"signed long ago":           {key, 6 * time.Minute, unchanged},
		"without a signature":       {key, 0, func(h http.Header) { h.Del("Webhook-Signature") }},
		"with a broken signature":   {key, 0, func(h http.Header) { h.Set("Webhook-Signature", "v1 v1,é v1,,") }},
		"signed for another job":    {key, 0, func(h http.Header) { h.Set("Webhook-Id", uuid.NewString()+".1") }},
		"with the path of the file": {key, 0, func(h http.Header) { h.Set("Webhook-Id", "../"+id) }},
	} {
		if got := attempt(t, url, c.key, id, order, time.Now().Add(-c.age), c.change); got.status != http.StatusUnauthorized || got.code() != "SHOP.BAD_SIGNATURE" {
			t.Errorf("%s it is answered %d %s", name, got.status, got.body)
		}
	}
}
