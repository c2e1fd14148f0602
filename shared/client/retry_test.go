package client_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jobweaver/jobweaver/shared/client"
)

// script is a gateway without a network, for tests whose clock is synctest's: it gives one answer after another, and
// records the requests and their times.
type script struct {
	answers []func() (*http.Response, error)
	asked   []*http.Request
	bodies  []string
	at      []time.Duration
	begin   time.Time
}

func newScript(answers ...func() (*http.Response, error)) *script {
	return &script{answers: answers, begin: time.Now()}
}

func (s *script) RoundTrip(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	s.asked, s.bodies, s.at = append(s.asked, r), append(s.bodies, string(body)), append(s.at, time.Since(s.begin))
	answer := s.answers[min(len(s.asked), len(s.answers))-1]
	return answer()
}

func (s *script) client(options ...client.Option) *client.Client {
	return client.New("http://gateway", "", append(options, client.WithTransport(s))...)
}

func answer(status int, body string, headers ...string) func() (*http.Response, error) {
	return func() (*http.Response, error) {
		res := &http.Response{StatusCode: status, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(body))}
		for i := 0; i < len(headers); i += 2 {
			res.Header.Add(headers[i], headers[i+1])
		}
		return res, nil
	}
}

func breaks(op string) func() (*http.Response, error) {
	return func() (*http.Response, error) { return nil, &net.OpError{Op: op, Net: "tcp", Err: io.ErrUnexpectedEOF} }
}

const accepted = `{"jobId": "j1", "status": "PENDING"}`

var ok = answer(http.StatusAccepted, accepted)

func TestARequestIsRepeatedOnlyWhereThatDoesNothingTwice(t *testing.T) {
	t.Parallel()
	submit := func(ctx context.Context, c *client.Client) error {
		_, err := c.Submit(ctx, client.JobRequest{JobType: "A", Payload: 1})
		return err
	}
	raw := func(body string) func(context.Context, *client.Client) error {
		return func(ctx context.Context, c *client.Client) error {
			_, err := c.SubmitJSON(ctx, []byte(body))
			return err
		}
	}
	get := func(ctx context.Context, c *client.Client) error {
		_, err := c.Get(ctx, "j1", 0)
		return err
	}
	cancel := func(ctx context.Context, c *client.Client) error { return c.Cancel(ctx, "j1") }
	away := answer(http.StatusServiceUnavailable, "")
	for name, c := range map[string]struct {
		call  func(context.Context, *client.Client) error
		first func() (*http.Response, error)
		asked int
	}{
		"a submit whose answer is lost":                       {submit, breaks("read"), 2},
		"a submit to a gateway without its database":          {submit, away, 2},
		"a request without a key whose answer is lost":        {raw(`{}`), breaks("read"), 1},
		"a request without a key that had no connection":      {raw(`{}`), breaks("dial"), 2},
		"a request without a key that was not read":           {raw(`{}`), answer(http.StatusRequestTimeout, ""), 2},
		"a request with a key whose answer is lost":           {raw(`{"idempotencyKey": "a"}`), breaks("read"), 2},
		"a request that reads":                                {get, breaks("read"), 2},
		"a request that reads, of a broken gateway":           {get, answer(http.StatusInternalServerError, ""), 1},
		"a request that is wrong":                             {submit, answer(http.StatusBadRequest, ""), 1},
		"a command whose answer is lost":                      {cancel, breaks("read"), 1},
		"a command to a gateway that cannot answer":           {cancel, away, 1},
		"a command that came too often, and so did nothing":   {cancel, answer(http.StatusTooManyRequests, "", "Retry-After", "1"), 2},
		"a submit that came too often, with RateLimit":        {submit, answer(http.StatusTooManyRequests, "", "RateLimit", `"jobs";r=0;t=1`), 2},
		"a submit that came too often, without knowing when":  {submit, answer(http.StatusTooManyRequests, ""), 1},
		"a submit that came too often, for longer than a day": {submit, answer(http.StatusTooManyRequests, "", "Retry-After", "99999"), 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := newScript(c.first, ok)
				if err := c.call(t.Context(), s.client()); (err == nil) != (c.asked == 2) || len(s.asked) != c.asked {
					t.Errorf("%v after %d requests, not %d", err, len(s.asked), c.asked)
				}
			})
		})
	}
}

func TestARepeatedSubmitKeepsItsKey(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newScript(breaks("read"), answer(http.StatusServiceUnavailable, ""), breaks("dial"), ok, ok)
		c := s.client()
		for range 2 {
			if _, err := c.Submit(t.Context(), client.JobRequest{JobType: "A", Payload: 1}); err != nil {
				t.Fatal(err)
			}
		}
		first, last := s.asked[0].Header.Get("Idempotency-Key"), s.asked[4].Header.Get("Idempotency-Key")
		for i := range 4 {
			if key := s.asked[i].Header.Get("Idempotency-Key"); key != first || s.bodies[i] != s.bodies[0] {
				t.Errorf("request %d has key %q, not %q, body %s", i, key, first, s.bodies[i])
			}
		}
		if len(first) < 20 || last == first {
			t.Errorf("the first job has key %q, the second %q", first, last)
		}
		own := newScript(ok)
		if _, err := own.client().Submit(t.Context(), client.JobRequest{JobType: "A", Payload: 1, IdempotencyKey: "mine"}); err != nil ||
			own.asked[0].Header.Get("Idempotency-Key") != "" || !strings.Contains(own.bodies[0], `"idempotencyKey":"mine"`) {
			t.Errorf("a key of one's own: %v, %v, %s", err, own.asked[0].Header, own.bodies[0])
		}
	})
}

func TestEachJobOfABatchHasAKeyAndAResult(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		results := func(n int) func() (*http.Response, error) {
			return answer(http.StatusOK, `{"results": [`+strings.TrimSuffix(strings.Repeat(`{"status": 202, "jobId": "j"},`, n), ",")+`]}`)
		}
		s := newScript(breaks("read"), results(1000), results(1))
		jobs := make([]client.JobRequest, 1001)
		jobs[7].IdempotencyKey = "mine"
		got, err := s.client().SubmitBatch(t.Context(), jobs)
		if err != nil || len(got) != 1001 || got[1000].JobID != "j" || s.bodies[0] != s.bodies[1] || jobs[0].IdempotencyKey != "" {
			t.Fatalf("%d results, %v", len(got), err)
		}
		var sent struct {
			Jobs []struct{ IdempotencyKey string }
		}
		if err := json.Unmarshal([]byte(s.bodies[0]), &sent); err != nil {
			t.Fatal(err)
		}
		keys := map[string]bool{}
		for _, job := range sent.Jobs {
			keys[job.IdempotencyKey] = true
		}
		if len(keys) != 1000 || !keys["mine"] || keys[""] {
			t.Errorf("%d keys", len(keys))
		}
	})
}

func TestPausesGrowAndTriesEnd(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newScript(breaks("read"))
		if _, err := s.client().Get(t.Context(), "j1", 0); !client.Unreached(err) || len(s.asked) != 5 {
			t.Fatalf("%v after %d requests", err, len(s.asked))
		}
		for i, most := range []time.Duration{100, 200, 400, 800} {
			if pause := s.at[i+1] - s.at[i]; pause > most*time.Millisecond || pause < most*time.Millisecond/2 {
				t.Errorf("pause %d is %s", i, pause)
			}
		}
		waits := newScript(answer(http.StatusServiceUnavailable, "", "Retry-After", "7"), ok)
		if _, err := waits.client().Get(t.Context(), "j1", 0); err != nil || waits.at[1] != 7*time.Second {
			t.Errorf("%v after %s", err, waits.at)
		}
		once := newScript(breaks("dial"))
		if _, err := once.client(client.WithRetries(0)).Get(t.Context(), "j1", 0); err == nil || len(once.asked) != 1 {
			t.Errorf("without retries: %v after %d", err, len(once.asked))
		}
	})
}

// When nothing is left of a limit, the next request waits until it is allowed again. The limit of jobs delays only
// requests that submit jobs.
func TestAClientKeepsWithinTheLimitsOfTheAnswers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newScript(
			answer(http.StatusAccepted, accepted, "RateLimit", `"requests";r=3;t=1`, "RateLimit", `"jobs";r=0;t=4`),
			answer(http.StatusOK, accepted, "RateLimit", `"requests";r=0;t=2`), ok,
		)
		c := s.client()
		submit := func() {
			if _, err := c.SubmitJSON(t.Context(), []byte("{}")); err != nil {
				t.Fatal(err)
			}
		}
		submit()
		for range 2 {
			if _, err := c.Get(t.Context(), "j1", 0); err != nil {
				t.Fatal(err)
			}
		}
		submit()
		if want := []time.Duration{0, 0, 2 * time.Second, 4 * time.Second}; len(s.at) != 4 || s.at[1] != want[1] ||
			s.at[2] != want[2] || s.at[3] != want[3] {
			t.Errorf("asked at %s, not %s", s.at, want)
		}
	})
}

func TestAnEndedContextEndsAPauseAtOnce(t *testing.T) {
	t.Parallel()
	for name, first := range map[string]func() (*http.Response, error){
		"a limit":  answer(http.StatusTooManyRequests, `{"status": 429}`, "Retry-After", "20"),
		"an error": answer(http.StatusServiceUnavailable, "", "Retry-After", "20"),
	} {
		synctest.Test(t, func(t *testing.T) {
			s := newScript(first, ok)
			ctx, cancel := context.WithCancel(t.Context())
			time.AfterFunc(time.Second, cancel)
			_, err := s.client().Get(ctx, "j1", 0)
			if refused := (*client.Error)(nil); !errors.As(err, &refused) || time.Since(s.begin) != time.Second {
				t.Errorf("%s: %v after %s", name, err, time.Since(s.begin))
			}
			soon, cancel := context.WithTimeout(t.Context(), 5*time.Second)
			defer cancel()
			before := time.Now()
			again := newScript(first, ok)
			if _, err := again.client().Get(soon, "j1", 0); err == nil || time.Since(before) != 0 {
				t.Errorf("%s: a pause beyond the deadline: %v after %s", name, err, time.Since(before))
			}
		})
	}
}

func TestErrorsAreKinds(t *testing.T) {
	t.Parallel()
	body := `{"type": "about:blank", "title": "Not Found", "status": 404, "detail": "there is no such job", "instance": "urn:uuid:t1",
		"errorCode": "API.JOB_NOT_FOUND", "message": "there is no such job", "jobId": "j1", "traceId": "t1", "details": []}`
	s := newScript(answer(http.StatusNotFound, body, "Content-Type", "application/problem+json"))
	_, err := s.client().Get(t.Context(), "j1", 0)
	var refused *client.Error
	if !errors.As(err, &refused) || refused.ErrorCode != "API.JOB_NOT_FOUND" || refused.Title != "Not Found" || refused.JobID != "j1" {
		t.Errorf("%+v", err)
	}
	if !errors.Is(err, client.ErrNotFound) || errors.Is(err, client.ErrConflict) || client.Unreached(err) {
		t.Errorf("%v is of another kind", err)
	}
	if !strings.Contains(s.asked[0].Header.Get("Accept"), "application/problem+json") {
		t.Errorf("asked for %v", s.asked[0].Header)
	}
	page := newScript(answer(http.StatusBadGateway, "<html>"))
	if _, err := page.client(client.WithRetries(0)).Get(t.Context(), "j1", 0); !errors.Is(err, client.ErrUnavailable) || !client.Unreached(err) {
		t.Errorf("a proxy's page: %v", err)
	}
}

func TestChangesArePatchesAndRunAgainHasAKey(t *testing.T) {
	t.Parallel()
	s := newScript(ok)
	c := s.client()
	if err := c.Change(t.Context(), "a/b", map[string]any{"priority": 7}); err != nil {
		t.Fatal(err)
	}
	if _, err := c.RunAgain(t.Context(), "j1", nil); err != nil {
		t.Fatal(err)
	}
	if r := s.asked[0]; r.Method != http.MethodPatch || r.URL.EscapedPath() != "/api/jobs/a%2Fb" || s.bodies[0] != `{"priority":7}` ||
		r.Header.Get("Content-Type") != "application/merge-patch+json" || r.Header.Get("Idempotency-Key") != "" {
		t.Errorf("%s %s %v %s", r.Method, r.URL, r.Header, s.bodies[0])
	}
	if r := s.asked[1]; r.Header.Get("Idempotency-Key") == "" || !bytes.Equal([]byte(s.bodies[1]), []byte("{}")) {
		t.Errorf("run again: %v %s", r.Header, s.bodies[1])
	}
}
