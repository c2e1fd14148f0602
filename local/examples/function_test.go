package examples

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"strings"
	"testing"
	"time"

	"github.com/cloudevents/sdk-go/v2/binding"
	"github.com/cloudevents/sdk-go/v2/event"
	cehttp "github.com/cloudevents/sdk-go/v2/protocol/http"

	"github.com/jobweaver/jobweaver/shared/webhook"
)

const (
	secret  = "whsec_c2VjcmV0IG9mIHRoZSBleGFtcGxlcyBpbiB0ZXN0cw=="
	another = "whsec_YW5vdGhlciBzZWNyZXQgdGhhdCBub2JvZHkgaGVyZSBoYXM="
)

// call makes the event of an attempt, as the worker does.
func call(t *testing.T, data any) event.Event {
	t.Helper()
	e := event.New()
	e.SetID("0198a3f2-0000-7000-8000-000000000001.2")
	e.SetSource("/jobweaver/runjob")
	e.SetType("io.jobweaver.function.call.v1")
	e.SetSubject("0198a3f2-0000-7000-8000-000000000001")
	e.SetExtension("jobid", e.Subject())
	e.SetExtension("attempt", 2)
	if err := e.SetData("application/json", data); err != nil {
		t.Fatal(err)
	}
	return e
}

// request makes a signed request with an event.
func request(t *testing.T, url string, e event.Event, structured bool) *http.Request {
	t.Helper()
	ctx := t.Context()
	if structured {
		ctx = binding.WithForceStructured(ctx)
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := cehttp.WriteRequest(ctx, binding.ToMessage(&e), r); err != nil {
		t.Fatal(err)
	}
	if r.Body == nil {
		r.Body = http.NoBody // the event has no data
	}
	sign(t, r, secret, time.Now())
	return r
}

func sign(t *testing.T, r *http.Request, secret string, at time.Time) {
	t.Helper()
	body, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	signer, err := webhook.NewSigner([]string{secret})
	if err != nil {
		t.Fatal(err)
	}
	signer.Sign(r.Header, "0198a3f2-0000-7000-8000-000000000001.2", at, body)
	r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
}

type reply struct {
	status int
	header http.Header
	body   string
}

// code returns the errorCode of an error body.
func (a reply) code() string {
	var body struct{ ErrorCode, Message string }
	if json.Unmarshal([]byte(a.body), &body) != nil || body.Message == "" {
		return "no error body: " + a.body
	}
	return body.ErrorCode
}

func send(t *testing.T, r *http.Request) reply {
	t.Helper()
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return reply{res.StatusCode, res.Header, strings.TrimSpace(string(body))}
}

func TestFunctionAnswersItsEvent(t *testing.T) {
	inEach(t, func(t *testing.T, language string) {
		p := function(t, language, "WEBHOOK_SECRET="+secret)
		text := func(text string) event.Event { return call(t, map[string]string{"text": text}) }
		for name, c := range map[string]struct {
			change func(r *http.Request)
			event  event.Event
			struc  bool
			status int
			want   string // the body, or the code of an error
		}{
			"in binary mode":           {event: text(" one two\nthree "), status: 200, want: `{"words":3}`},
			"in structured mode":       {event: text("one two"), struc: true, status: 200, want: `{"words":2}`},
			"with no words":            {event: text(""), status: 200, want: `{"words":0}`},
			"with words of any script": {event: text("käse 仕事 🧵"), status: 200, want: `{"words":3}`},
			"with a text of half a megabyte": {
				event: text(strings.Repeat("word ", 100_000)), status: 200, want: `{"words":100000}`,
			},
			"without a text":      {event: call(t, map[string]int{"number": 1}), status: 400, want: "WORDS.NO_TEXT"},
			"with another data":   {event: call(t, []int{1}), status: 400, want: "WORDS.NO_TEXT"},
			"with no data at all": {event: call(t, nil), status: 400, want: "WORDS.NO_TEXT"},
			"that is none": {
				change: func(r *http.Request) {
					maps.DeleteFunc(r.Header, func(name string, _ []string) bool { return strings.HasPrefix(name, "Ce-") })
				},
				event: text("one"), status: 400, want: "FUNCTION.BAD_REQUEST",
			},
			"without a type": {
				change: func(r *http.Request) { r.Header.Del("ce-type") },
				event:  text("one"), status: 400, want: "FUNCTION.BAD_REQUEST",
			},
			"without a signature": {
				change: func(r *http.Request) { r.Header.Del("webhook-signature") },
				event:  text("one"), status: 401, want: "FUNCTION.BAD_REQUEST",
			},
			"that another signed": {
				change: func(r *http.Request) { sign(t, r, another, time.Now()) },
				event:  text("one"), status: 401, want: "FUNCTION.BAD_REQUEST",
			},
			"that was signed long ago": {
				change: func(r *http.Request) { sign(t, r, secret, time.Now().Add(-6*time.Minute)) },
				event:  text("one"), status: 401, want: "FUNCTION.BAD_REQUEST",
			},
			"with a signature that is none": {
				change: func(r *http.Request) { r.Header.Set("webhook-signature", "v1 v1,é v1,,") },
				event:  text("one"), status: 401, want: "FUNCTION.BAD_REQUEST",
			},
			"whose sender changes its secret": {
				change: func(r *http.Request) {
					old := r.Header.Get("webhook-signature")
					sign(t, r, another, time.Now())
					r.Header.Set("webhook-signature", r.Header.Get("webhook-signature")+" "+old)
				},
				event: text("one"), status: 200, want: `{"words":1}`,
			},
			"that is too large": {
				event: text(strings.Repeat("x", 1<<20)), status: 413, want: "FUNCTION.BAD_REQUEST",
			},
		} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				r := request(t, p.url, c.event, c.struc)
				if c.change != nil {
					c.change(r)
				}
				got := send(t, r)
				result := strings.ReplaceAll(got.body, " ", "")
				if c.status >= 400 {
					result = got.code()
				}
				if got.status != c.status || result != c.want {
					t.Errorf("answered %d %s", got.status, got.body)
				}
				if !strings.HasPrefix(got.header.Get("Content-Type"), "application/json") {
					t.Errorf("as %s", got.header.Get("Content-Type"))
				}
			})
		}
	})
}

// A request whose body does not arrive takes a place.
func TestBusyFunctionAnswersWithRetryAfter(t *testing.T) {
	inEach(t, func(t *testing.T, language string) {
		p := function(t, language, "AT_ONCE=1")
		free := occupy(t, p)
		r := request(t, p.url, call(t, map[string]string{"text": "one"}), false)
		if got := send(t, r); got.status != 503 || got.code() != "FUNCTION.BUSY" || got.header.Get("Retry-After") != "1" {
			t.Errorf("while it is busy it answered %d %s %v", got.status, got.body, got.header)
		}
		if got := free(); got.status != 200 {
			t.Errorf("who was first was answered %d %s", got.status, got.body)
		}
	})
}

// occupy takes a place of a function until free is called, which returns the response.
func occupy(t *testing.T, p *program) (free func() reply) {
	t.Helper()
	probe := func() reply { return send(t, request(t, p.url, call(t, map[string]string{"text": "one"}), false)) }
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); {
		r := request(t, p.url, call(t, map[string]string{"text": "one two"}), false)
		body, rest := r.Body, (*io.PipeWriter)(nil)
		r.Body, rest = io.Pipe()
		sent, end := context.WithCancel(t.Context())
		r = r.WithContext(httptrace.WithClientTrace(r.Context(), &httptrace.ClientTrace{WroteHeaders: end}))
		answered := make(chan reply, 1)
		go func() {
			defer end()
			answered <- send(t, r)
		}()
		free := func() reply {
			_, _ = io.Copy(rest, body) // the function may have answered before it reads the body
			_ = rest.Close()
			return <-answered
		}
		<-sent.Done() // a probe that is sent before could take the place
		for range 100 {
			if probe().status == http.StatusServiceUnavailable {
				return free
			}
			<-time.After(10 * time.Millisecond)
		}
		free() // a probe has taken it all the same
	}
	t.Fatal("it is never busy")
	return nil
}

// callback is the body of a callback.
type callback struct {
	JobID     string `json:"jobId"`
	Attempt   int    `json:"attempt"`
	Status    string `json:"status"`
	Output    json.RawMessage
	Progress  struct{ Percent int }
	ErrorCode string `json:"errorCode"`
	Message   string `json:"message"`
	Retryable *bool  `json:"retryable"`
}

// receiver receives callbacks, and answers each with the status from answer.
func receiver(t *testing.T, answer func(w callback) int) (url string, callbacks <-chan callback) {
	t.Helper()
	received := make(chan callback, 10)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var c callback
		if err := json.NewDecoder(r.Body).Decode(&c); err != nil || r.Header.Get("X-Callback-Secret") != "whsec_of-this-attempt" {
			t.Errorf("called back with %v, secret %q", err, r.Header.Get("X-Callback-Secret"))
		}
		w.WriteHeader(answer(c))
		received <- c
	}))
	t.Cleanup(server.Close)
	return server.URL, received
}

// sendLater sends an event and has the function call back at url.
func sendLater(t *testing.T, p *program, url string, data any) reply {
	t.Helper()
	r := request(t, p.url+"/later", call(t, data), false)
	if url != "" {
		r.Header.Set("X-Callback-Url", url)
		r.Header.Set("X-Callback-Secret", "whsec_of-this-attempt")
	}
	return send(t, r)
}

func next(t *testing.T, callbacks <-chan callback) callback {
	t.Helper()
	select {
	case w := <-callbacks:
		if w.JobID != "0198a3f2-0000-7000-8000-000000000001" || w.Attempt != 2 {
			t.Errorf("it returned %+v, of another attempt", w)
		}
		return w
	case <-time.After(20 * time.Second):
		t.Fatal("no callback arrived")
		return callback{}
	}
}

func TestFunctionCallsBack(t *testing.T) {
	inEach(t, func(t *testing.T, language string) {
		p := function(t, language, "WEBHOOK_SECRET="+secret)
		t.Run("with how far it is, and its output", func(t *testing.T) {
			t.Parallel()
			url, callbacks := receiver(t, func(callback) int { return 200 })
			if got := sendLater(t, p, url, map[string]string{"text": "one two"}); got.status != 202 || got.body != "" {
				t.Errorf("answered %d %s", got.status, got.body)
			}
			if w := next(t, callbacks); w.Status != "PROGRESS" || w.Progress.Percent != 50 {
				t.Errorf("first %+v", w)
			}
			w := next(t, callbacks)
			if w.Status != "COMPLETED" || strings.ReplaceAll(string(w.Output), " ", "") != `{"words":2}` {
				t.Errorf("then %+v", w)
			}
		})
		t.Run("with what is wrong", func(t *testing.T) {
			t.Parallel()
			url, callbacks := receiver(t, func(callback) int { return 200 })
			if got := sendLater(t, p, url, map[string]int{"text": 1}); got.status != 202 {
				t.Errorf("answered %d %s", got.status, got.body)
			}
			next(t, callbacks)
			w := next(t, callbacks)
			if w.Status != "FAILED" || w.ErrorCode != "WORDS.NO_TEXT" || w.Message == "" || w.Retryable == nil || *w.Retryable {
				t.Errorf("got %+v", w)
			}
		})
		t.Run("again if its outcome was not accepted", func(t *testing.T) {
			t.Parallel()
			outcomes := 0
			url, callbacks := receiver(t, func(w callback) int {
				if w.Status == "PROGRESS" {
					return 503 // progress is not sent again
				}
				outcomes++
				return []int{0, 503, 200}[outcomes]
			})
			sendLater(t, p, url, map[string]string{"text": "one"})
			for _, want := range []string{"PROGRESS", "COMPLETED", "COMPLETED"} {
				if w := next(t, callbacks); w.Status != want {
					t.Errorf("got %+v, not %s", w, want)
				}
			}
		})
		t.Run("only with an X-Callback-Url", func(t *testing.T) {
			t.Parallel()
			if got := sendLater(t, p, "", map[string]string{"text": "one"}); got.status != 400 || got.code() != "FUNCTION.NO_CALLBACK" {
				t.Errorf("answered %d %s", got.status, got.body)
			}
		})
	})
}

func TestFunctionFinishesItsEventsBeforeItStops(t *testing.T) {
	inEach(t, func(t *testing.T, language string) {
		p := function(t, language)
		asked, goOn := make(chan struct{}), make(chan struct{})
		url, callbacks := receiver(t, func(w callback) int {
			if w.Status == "PROGRESS" {
				close(asked)
				<-goOn
			}
			return 200
		})
		sendLater(t, p, url, map[string]string{"text": "one"})
		<-asked
		code := make(chan int)
		go func() { code <- p.stop(t) }()
		for { // until it accepts no more connections
			conn, err := net.Dial("tcp", strings.TrimPrefix(p.url, "http://"))
			if err != nil {
				break
			}
			_ = conn.Close()
			<-time.After(10 * time.Millisecond)
		}
		close(goOn)
		next(t, callbacks)
		if w := next(t, callbacks); w.Status != "COMPLETED" {
			t.Errorf("then %+v", w)
		}
		if c := <-code; c != 0 {
			t.Errorf("its exit code is %d", c)
		}
	})
}
