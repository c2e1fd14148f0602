package interplay

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/emersion/go-smtp"

	"github.com/jobweaver/jobweaver/shared/client"
	"github.com/jobweaver/jobweaver/shared/retry"
)

// A Witness is the HTTP server that does the work of FUNCTION and EXTERNAL jobs and receives the ends of jobs. It writes
// down what it does; no database of the installation takes part in that.
type Witness struct {
	*httptest.Server

	MailPort int
	smtp     *smtp.Server

	mu   sync.Mutex
	logs map[string]*Log // by owner
}

// NewWitness starts it.
func NewWitness() (*Witness, error) {
	w := &Witness{logs: map[string]*Log{}}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /function/{owner}", func(out http.ResponseWriter, in *http.Request) { w.work(out, in, false) })
	mux.HandleFunc("POST /external/{owner}", func(out http.ResponseWriter, in *http.Request) { w.work(out, in, true) })
	mux.HandleFunc("POST /step/{owner}", w.step)
	mux.HandleFunc("POST /end/{owner}/{how}", w.end)
	mux.HandleFunc("POST /alert/{owner}", w.notice)
	w.Server = httptest.NewServer(mux)
	return w, w.serveMail()
}

// Open makes the log of an owner.
func (w *Witness) Open(owner, hook string, k keys) *Log {
	w.mu.Lock()
	defer w.mu.Unlock()
	l := &Log{ctx: context.Background(), keys: k, hook: hook, starts: map[string]int{}, waits: map[string][]*waitOf{}, answered: map[string]bool{}}
	w.logs[owner] = l
	return l
}

func (w *Witness) of(owner string) *Log {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.logs[owner]
}

// Log is what was seen of one owner's jobs.
type Log struct {
	ctx  context.Context //nolint:containedctx // callbacks outlive the request that they follow
	keys keys
	hook string // the owner of the jobs that the hook makes

	mu       sync.Mutex
	runs     []*Run
	backs    []*Back
	arrivals []*Arrival
	mails    []*Mail
	notices  []*NoticeSeen
	steps    []*StepRun
	waits    map[string][]*waitOf // of jobs
	events   []*Sent
	starts   map[string]int  // of jobs
	answered map[string]bool // deliveries that were refused once
	later    sync.WaitGroup
}

// task is the data of a payload: what the attempts of a job are to do.
type task struct {
	Name  string          `json:"name"`
	Acts  []Act           `json:"acts"`
	In    json.RawMessage `json:"in,omitempty"`
	Item  json.RawMessage `json:"item,omitempty"`
	Index *int            `json:"index,omitempty"`
}

// start writes down that an attempt begins, and returns what it does. The n-th start of a job does its n-th act, so
// that an attempt that is lost before it starts takes none of them away.
func (l *Log) start(r *Run) (Act, task) {
	var t task
	if err := json.Unmarshal(r.Data, &t); err != nil || len(t.Acts) == 0 {
		t.Acts = []Act{{Do: actOK}}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	r.Start, r.Name = time.Now(), t.Name
	l.runs = append(l.runs, r)
	n := l.starts[r.Job]
	l.starts[r.Job]++
	return t.Acts[min(n, len(t.Acts)-1)], t
}

// waitOf is a wait that the handler of a job has begun, and asks about in each further attempt.
type waitOf struct {
	name, group string
	child       Job // that it calls; without a name, it waits for an event
}

// waitsOf returns the waits of a job, with those that an act begins.
func (l *Log) waitsOf(job string, act Act) []*waitOf {
	l.mu.Lock()
	defer l.mu.Unlock()
	name := func() string { return fmt.Sprintf("%s %d", job, len(l.waits[job])) }
	switch act.Do {
	case actReceive:
		l.waits[job] = append(l.waits[job], &waitOf{name: name()})
	case actCall:
		group := ""
		if len(act.Calls) > 1 {
			group = name()
		}
		for _, child := range act.Calls {
			w := &waitOf{name: name(), group: group, child: child}
			w.child.Name = calledBy(job, len(l.waits[job]))
			l.waits[job] = append(l.waits[job], w)
		}
	}
	return slices.Clone(l.waits[job])
}

// sent writes down the first 2xx for an event.
func (l *Log) sent(id string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !slices.ContainsFunc(l.events, func(s *Sent) bool { return s.ID == id }) {
		l.events = append(l.events, &Sent{ID: id, At: time.Now()})
	}
}

// ends writes down how an attempt ends, before its worker can know.
func (l *Log) ends(r *Run, how string, change func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !r.End.IsZero() {
		return
	}
	r.End, r.How = time.Now(), how
	if change != nil {
		change()
	}
}

// output is what an attempt puts out: an array for fan-outs, and a value that no other attempt puts out.
func (t task) output(r *Run) json.RawMessage {
	return fmt.Appendf(nil, `{"from":%q,"attempt":%d,"list":[%d,{"v":%q},"x"]}`, t.Name, r.Attempt, r.Attempt, t.Name)
}

func (w *Witness) work(out http.ResponseWriter, in *http.Request, external bool) {
	l := w.of(in.PathValue("owner"))
	body, err := io.ReadAll(in.Body)
	if l == nil || err != nil {
		http.Error(out, "gone", http.StatusGone)
		return
	}
	r := &Run{Job: in.Header.Get("Ce-Jobid"), Data: body, Had: in.Header.Get("X-Checkpoint")}
	r.Attempt, _ = strconv.Atoi(in.Header.Get("Ce-Attempt"))
	back := callTo{in.Header.Get("X-Callback-Url"), in.Header.Get("X-Callback-Secret"), in.Header.Get("X-Callback-Deadline")}
	if external {
		var order struct {
			JobID    string          `json:"jobId"`
			Attempt  int             `json:"attempt"`
			Data     json.RawMessage `json:"data"`
			Callback *struct{ URL, Secret, Deadline string }
		}
		if err := json.Unmarshal(body, &order); err != nil || order.Callback == nil {
			http.Error(out, "no order", http.StatusBadRequest)
			return
		}
		r.Job, r.Attempt, r.Data = order.JobID, order.Attempt, order.Data
		back = callTo{order.Callback.URL, order.Callback.Secret, order.Callback.Deadline}
	}
	if in.Header.Get("Ce-Source") != "" || external { // else a handler of the test calls
		if _, err := l.keys.call.Verify(in.Header, body); err != nil {
			r.Wrong = err.Error()
		}
	}
	act, t := l.start(r)
	if act.Do == actLater && act.Back == backEarly {
		l.calls(back, r, t, act)
	}
	if !retry.Pause(in.Context(), time.Duration(act.Ms)*time.Millisecond) {
		l.ends(r, "cut", func() { r.Cut = true })
		return
	}
	w.answer(out, in, l, r, act, t, back)
}

// answer ends the attempt as the act has it.
func (w *Witness) answer(out http.ResponseWriter, in *http.Request, l *Log, r *Run, act Act, t task, back callTo) {
	if act.Saves {
		out.Header().Set("X-Checkpoint", fmt.Sprintf(`{"saved":%d}`, r.Attempt))
		l.saves(r)
	}
	switch act.Do {
	case actFail:
		l.ends(r, act.Do, nil)
		refuse(out, http.StatusInternalServerError, "TEST.FAILED")
	case actFatal:
		l.ends(r, act.Do, nil)
		refuse(out, http.StatusBadRequest, "TEST.FATAL")
	case actAfter:
		l.ends(r, act.Do, func() { r.DelayMs = 1000 })
		out.Header().Set("Retry-After", "1")
		refuse(out, http.StatusServiceUnavailable, "TEST.LATER")
	case actSnooze:
		l.ends(r, act.Do, func() { r.DelayMs = 200 })
		out.Header().Set("X-Snooze-Ms", "200")
		out.WriteHeader(http.StatusNoContent)
	case actDrop:
		l.ends(r, act.Do, nil)
		panic(http.ErrAbortHandler)
	case actHang:
		<-in.Context().Done()
		l.ends(r, act.Do, func() { r.Cut = true })
	case actLater:
		l.ends(r, act.Do, nil)
		out.WriteHeader(http.StatusAccepted)
		if act.Back != backEarly {
			l.calls(back, r, t, act)
		}
	default:
		output := t.output(r)
		l.ends(r, actOK, func() { r.Output = output })
		out.Header().Set("Content-Type", "application/json")
		_, _ = out.Write(output)
	}
}

func (l *Log) saves(r *Run) {
	l.mu.Lock()
	defer l.mu.Unlock()
	r.Saved = fmt.Sprintf(`{"saved":%d}`, r.Attempt)
}

func refuse(out http.ResponseWriter, status int, code string) {
	out.Header().Set("Content-Type", "application/json")
	out.WriteHeader(status)
	_, _ = fmt.Fprintf(out, `{"errorCode":%q,"message":"as the payload has it"}`, code)
}

// end receives the end of a job.
func (w *Witness) end(out http.ResponseWriter, in *http.Request) {
	l := w.of(in.PathValue("owner"))
	body, err := io.ReadAll(in.Body)
	if l == nil || err != nil {
		out.WriteHeader(http.StatusGone)
		return
	}
	a := &Arrival{ID: in.Header.Get("Webhook-Id"), At: time.Now(), Answer: http.StatusNoContent}
	if _, err := l.keys.end.Verify(in.Header, body); err != nil {
		a.Wrong = err.Error()
	}
	var shown client.Job
	if err := json.Unmarshal(body, &shown); err != nil {
		a.Wrong = err.Error()
	}
	a.Job, a.Status, a.Version = shown.JobID, shown.Status, shown.Version
	l.mu.Lock()
	if in.PathValue("how") == "once500" && !l.answered[a.ID] {
		l.answered[a.ID], a.Answer = true, http.StatusInternalServerError
	}
	l.arrivals = append(l.arrivals, a)
	l.mu.Unlock()
	out.WriteHeader(a.Answer)
}

// callTo is where an outside system reports what became of an attempt.
type callTo struct{ url, secret, deadline string }

// calls calls back as the act has it, beside the request.
func (l *Log) calls(to callTo, r *Run, t task, act Act) {
	l.later.Go(func() { l.callBack(to, r, t, act) })
}

func (l *Log) callBack(to callTo, r *Run, t task, act Act) {
	completed := map[string]any{"jobId": r.Job, "attempt": r.Attempt, "status": "COMPLETED", "output": t.output(r)}
	failed := map[string]any{"jobId": r.Job, "attempt": r.Attempt, "status": "FAILED", "errorCode": "TEST.BACK"}
	wait := 30 * time.Millisecond
	if act.Back == backEarly {
		wait = 0
	}
	if act.Back == backLate {
		if at, err := time.Parse(time.RFC3339Nano, to.deadline); err == nil {
			wait = time.Until(at) + 50*time.Millisecond
		}
	}
	if !retry.Pause(l.ctx, wait) {
		return
	}
	switch act.Back {
	case backNever:
	case backFail:
		l.sends(to, r, act.Back, failed)
	case backFatal:
		failed["retryable"] = false
		l.sends(to, r, act.Back, failed)
	case backTwice:
		l.sends(to, r, backOK, completed)
		l.sends(to, r, "same again", completed)
		l.sends(to, r, "another", failed)
	case backWrong:
		wrong := to
		wrong.secret = "whsec_" + strings.Repeat("A", 44)
		l.sends(wrong, r, backWrong, completed)
		l.sends(to, r, backOK, completed)
	case backProgress:
		l.sends(to, r, backProgress, map[string]any{
			"jobId": r.Job, "attempt": r.Attempt, "status": "PROGRESS", "progress": map[string]any{"percent": 40},
		})
		l.sends(to, r, backOK, completed)
	default:
		l.sends(to, r, act.Back, completed)
	}
}

// sends sends one callback until it is answered.
func (l *Log) sends(to callTo, r *Run, how string, message map[string]any) {
	body, err := json.Marshal(message)
	if err != nil {
		return
	}
	b := &Back{Job: r.Job, Attempt: r.Attempt, How: how, Sent: time.Now()}
	b.Status, _ = message["status"].(string)
	for {
		if b.Answer, b.Code, err = post(l.ctx, to, body); err == nil && b.Answer < 500 && b.Answer != http.StatusTooManyRequests {
			break
		}
		if !retry.Pause(l.ctx, 300*time.Millisecond) || time.Since(b.Sent) > answerWithin {
			break
		}
	}
	b.At = time.Now()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.backs = append(l.backs, b)
}

func post(ctx context.Context, to callTo, body []byte) (status int, code string, err error) {
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, to.url, strings.NewReader(string(body)))
	if err != nil {
		return 0, "", err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("X-Callback-Secret", to.secret)
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, "", err
	}
	var problem struct{ ErrorCode string }
	_ = json.NewDecoder(res.Body).Decode(&problem)
	return res.StatusCode, problem.ErrorCode, res.Body.Close()
}
