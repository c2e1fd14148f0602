package observability

import (
	"context"
	"flag"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/jobweaver/jobweaver/local/dev"
	"github.com/jobweaver/jobweaver/shared/client"
)

var withInstallation = flag.Bool("observability.run", false, "ask a real Prometheus about a fixture that runs (needs prometheus)")

// patience bounds the wait for a query's first answer: counters must rise between two scrapes, and jobs are counted
// every ten seconds.
const patience = 3 * time.Minute

// mayBeEmpty lists selectors that return nothing on a healthy fixture, with the reason.
var mayBeEmpty = map[string]string{
	"jobweaver_events_refused_total":              "no event of this test is refused for good",
	`jobweaver_http_requests_total{code=~"5.."}`:  "nothing here fails",
	"function:jobweaver_http_errors:ratio_rate5m": "likewise",

	"jobweaver_certificate_expiry_timestamp_seconds": "there is no TLS here",

	"jobweaver_hook_requests_total":                 "there is no hook here",
	"jobweaver_relay_failures_total":                "no relay runs here, since there is no outbox",
	`jobweaver_relay_failures_total{at="database"}`: "likewise",
	"jobweaver_relay_oldest_age_seconds":            "likewise",
	"jobweaver_relay_rejected_rows":                 "likewise",
	"jobweaver_relay_rows_total":                    "likewise",
	"jobweaver_relay_waiting_rows":                  "likewise",
	"jobweaver_pull_workers":                        "no pull runs here, since no queue is for it",
	"jobweaver_pull_attempts_in_hand":               "likewise",
	"jobweaver_pull_attempts_unclaimed":             "likewise",
	"jobweaver_pull_claims_total":                   "likewise",
	"jobweaver_pull_attempts_handed_total":          "likewise",
	"jobweaver_pull_attempts_lost_total":            "likewise",
	"jobweaver_pull_results_total":                  "likewise",
	"jobweaver_pull_results_refused_total":          "likewise",
}

// There is one fixture, because metrics belong to the process.
func TestEveryQueryAnswersOnAnInstallationThatRuns(t *testing.T) {
	if !*withInstallation {
		t.Skip("needs -observability.run")
	}
	t.Setenv("LEASE", "3s") // so that a lease expires
	o := dev.Options{
		Dir: t.TempDir(), Kafka: "embedded", Queues: []string{"default", "nobody"}, WorkerQueues: []string{"default"},
		JobTypes: []string{"RESIZE"}, // no worker runs it
		Out:      io.Discard,
	}
	err := dev.Run(t.Context(), o, func(ctx context.Context, at string) error {
		fixture, err := url.Parse(at)
		if err != nil {
			return err
		}
		p := startPrometheus(t, fixture.Host)
		all, ctx := errgroup.WithContext(ctx)
		ctx, end := context.WithCancel(ctx)
		all.Go(func() error { return busy(ctx, client.New(at, "")) })
		all.Go(func() error {
			defer end()
			look(ctx, t, p)
			compare(t, scrape(ctx, t, at))
			return nil
		})
		return all.Wait()
	})
	if err != nil {
		t.Fatal(err)
	}
}

// busy submits jobs with all outcomes until ctx ends.
func busy(ctx context.Context, c *client.Client) error {
	var calls atomic.Int64
	receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if calls.Add(1)%2 == 0 {
			w.WriteHeader(http.StatusInternalServerError)
		}
	}))
	defer receiver.Close()
	const quick = `"retryPolicy":{"type":"fixed","delayMs":50}`
	step := func(steps, more string) string {
		return fmt.Sprintf(`{"jobType":"SIMULATION","payload":{"steps":[%s]}%s}`, steps, more)
	}
	jobs := []string{
		step(`{"type":"LOG","message":"hi"}`, fmt.Sprintf(`,"callbackUrl":%q`, receiver.URL)),
		step(`{"type":"FAIL","message":"no","failAttempts":1}`, ","+quick),
		step(`{"type":"FAIL","message":"no","retryable":false}`, ""),
	}
	once := append(slices.Repeat([]string{step(`{"type":"LOG","message":"hi"}`, `,"queue":"nobody"`)}, 30),
		step(`{"type":"LOG","message":"hi"}`, `,"delayMs":3600000`), `{"jobType":"RESIZE","payload":{}}`)
	again := time.NewTicker(500 * time.Millisecond)
	defer again.Stop()
	for first := true; ; first = false {
		for _, job := range jobs {
			if _, err := c.SubmitJSON(ctx, []byte(job)); err != nil && ctx.Err() == nil {
				return err
			}
		}
		for _, job := range once {
			if _, err := c.SubmitJSON(ctx, []byte(job)); first && err != nil && ctx.Err() == nil {
				return err
			}
			if !first {
				break
			}
		}
		select {
		case <-again.C:
		case <-ctx.Done():
			return nil
		}
	}
}

// look runs all queries of dashboards and rules.
func look(ctx context.Context, t *testing.T, p prometheus) {
	if left := p.awaitAll(ctx, []string{"up == 1"}); len(left) > 0 {
		t.Errorf("the fixture is not scraped: %v", left)
		return
	}
	asked := map[string]string{} // by query, where it is used first
	ask := func(who, expr string) {
		if asked[expr] == "" && mayBeEmpty[expr] == "" {
			asked[expr] = who
		}
	}
	for _, q := range panelQueries(t) {
		expr := strings.NewReplacer("$function", ".*", "$__rate_interval", "30s").Replace(q.expr)
		if !empty(expr) {
			ask(q.dashboard+": "+q.panel, expr)
		}
	}
	for _, r := range rulesOf(t, "rules.yml") {
		if mayBeEmpty[r.Record] == "" {
			ask("rules.yml: "+r.Record, r.Record)
		}
	}
	// An alert's query returns a result only when something is wrong, but its selectors must always return one.
	for _, r := range rulesOf(t, "alerts.yml") {
		for _, selector := range selectors.FindAllString(r.Expr, -1) {
			ask("alerts.yml: "+r.Alert, selector)
		}
		if _, err := p.ask(ctx, r.Expr); err != nil && ctx.Err() == nil {
			t.Errorf("alerts.yml: %s: %v", r.Alert, err)
		}
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for expr, err := range p.awaitAll(ctx, slices.Collect(maps.Keys(asked))) {
		t.Errorf("%s\n\t%s\n\t%v", asked[expr], expr, err)
	}
	t.Logf("%d queries were asked", len(asked))
}

// selectors finds the metrics of a query with their matchers.
var selectors = regexp.MustCompile(`(?:[a-z_]+:jobweaver_\w+:\w+|\bjobweaver_[a-z_0-9]+\b|\bprocess_start_time_seconds\b|\bup\b)(?:\{[^}]*\})?`)

func empty(expr string) bool {
	for _, selector := range selectors.FindAllString(expr, -1) {
		name, _, _ := strings.Cut(selector, "{")
		if mayBeEmpty[selector] != "" || mayBeEmpty[name] != "" {
			return true
		}
	}
	return false
}

func scrape(ctx context.Context, t *testing.T, at string) string {
	t.Helper()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, at+"/metrics", nil)
	if err != nil {
		t.Fatal(err)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Error(err)
		return ""
	}
	defer func() { _ = res.Body.Close() }()
	body, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode != http.StatusOK {
		t.Errorf("%s, %v", res.Status, err)
	}
	return string(body)
}

var (
	helpLine   = regexp.MustCompile(`(?m)^# HELP (jobweaver_\w+) (.*)$`)
	seriesLine = regexp.MustCompile(`(?m)^(jobweaver_\w+?)(?:_bucket|_sum|_count)?\{([^}]*)\} `)
	labelName  = regexp.MustCompile(`(\w+)="`)
)

// compare compares the metrics of the fixture with the documented ones.
func compare(t *testing.T, metrics string) {
	t.Helper()
	pages, seen := documented(t), map[string]bool{}
	for _, line := range helpLine.FindAllStringSubmatch(metrics, -1) {
		name, help := line[1], line[2]
		seen[name] = true
		if _, known := pages[name]; !known {
			t.Errorf("docs/observability.md does not have %s", name)
		}
		if !strings.Contains(help, "; sum") && !strings.Contains(help, "; max") && !strings.Contains(help, "each process") {
			t.Errorf("%s does not say how copies go together: %s", name, help)
		}
	}
	for name := range pages {
		if !seen[name] && mayBeEmpty[name] == "" {
			t.Errorf("no process exports %s, which docs/observability.md has", name)
		}
	}
	for _, line := range seriesLine.FindAllStringSubmatch(metrics, -1) {
		var labels []string
		for _, label := range labelName.FindAllStringSubmatch(line[2], -1) {
			if label[1] != "le" {
				labels = append(labels, label[1])
			}
		}
		slices.Sort(labels)
		if want, known := pages[line[1]]; known && !slices.Equal(labels, want) {
			t.Errorf("%s has the labels %v, documented are %v", line[1], labels, want)
			pages[line[1]] = labels // once
		}
	}
}
