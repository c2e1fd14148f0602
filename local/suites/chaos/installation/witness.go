package installation

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"strconv"
	"sync"
	"time"

	"github.com/jobweaver/jobweaver/shared/retry"
)

// witness does the work of the jobs, over HTTP, and records when each attempt began and ended. It is not part of
// JobWeaver and no fault hits it: the checks trust its file.
type witness struct {
	server  *http.Server
	Address string
	file    *os.File
	stopped context.Context
	stop    context.CancelFunc
	calling sync.WaitGroup
	poison  func(remote string) error // kills the process that sent a request

	mu    sync.Mutex
	done  map[string]time.Time // when the work was done, by key
	last  time.Time            // the last end
	ended chan struct{}        // closed at each end
	over  map[attempt]bool     // attempts of pull workers that have reported their end
}

// attempt names an attempt of a job.
type attempt struct {
	job    string
	number int
}

// Line is a line of the file.
type Line struct {
	At      time.Time `json:"at"`
	What    string    `json:"what"`
	Job     string    `json:"job,omitempty"`
	Attempt int       `json:"attempt,omitempty"`
	Key     string    `json:"key,omitempty"`
	How     string    `json:"how,omitempty"`
	ID      string    `json:"id,omitempty"`
	Count   int       `json:"count,omitempty"` // in the checkpoint that a counting job's attempt got, and at its end gave

	// Of attempts of pull workers:
	By     string `json:"by,omitempty"`     // the process
	Name   string `json:"name,omitempty"`   // of a step; at the end of an attempt, of that or of the wait that it ended in
	Beside int    `json:"beside,omitempty"` // the jobs that a batch handler got together
}

// The events that the witness records.
const (
	LineStart     = "start"
	LineEnd       = "end"
	LineCall      = "call"      // of a SIMULATION job's HTTP_CALL, which names only its key
	LineDelivered = "delivered" // of a job's end, to its callbackUrl
	LineStep      = "step"      // a step runs; its result is the ID of the line
	LineKept      = "kept"      // the result that an attempt has of a step, which is stored
)

// How an attempt ended for the witness.
const (
	HowOK      = "ok"
	HowFailed  = "failed"
	HowSnoozed = "snoozed"
	HowCut     = "cut"     // the worker closed the connection
	howRefused = "refused" // its callback came too late
)

const (
	webhookSecret  = "whsec_Y2hhb3Mtd2ViaG9va3MtY2hhb3Mtd2ViaG9va3MtY2hhb3M="
	callbackSecret = "whsec_Y2hhb3MtY2FsbGJhY2tzLWNoYW9zLWNhbGxiYWNrcy1jaGE="
)

func newWitness(path string, poison func(string) error) (*witness, error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open witness file: %w", err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("start witness: %w", err)
	}
	w := &witness{
		Address: "http://" + l.Addr().String(), file: file, poison: poison, done: map[string]time.Time{},
		ended: make(chan struct{}), over: map[attempt]bool{},
	}
	w.stopped, w.stop = context.WithCancel(context.Background())
	mux := http.NewServeMux()
	mux.HandleFunc("POST /work", w.work)
	mux.HandleFunc("POST /outside", w.outside)
	mux.HandleFunc("GET /call/{key}", w.call)
	mux.HandleFunc("POST /delivered", w.delivered)
	mux.HandleFunc("POST /begin", w.begin)
	mux.HandleFunc("POST /report", w.report)
	w.server = &http.Server{Handler: mux, ReadHeaderTimeout: time.Minute}
	go func() { _ = w.server.Serve(l) }()
	return w, nil
}

// settings returns the settings of the functions that call it, or that it calls back.
func (w *witness) settings(gateway string) []string {
	return []string{
		"OUTBOUND_ALLOW=127.0.0.0/8", "WEBHOOK_SECRETS=" + webhookSecret, "CALLBACK_SECRETS=" + callbackSecret,
		"CALLBACK_URL=" + gateway + "/api/jobs/callback",
	}
}

func (w *witness) close() error {
	w.stop()
	w.calling.Wait()
	return errors.Join(w.server.Close(), w.file.Close())
}

// write appends a line with a single write, so that lines never mix.
func (w *witness) write(l Line) {
	w.mu.Lock()
	defer w.mu.Unlock()
	l.At = time.Now()
	text, err := json.Marshal(l)
	if err != nil {
		panic(err) // texts and numbers
	}
	if _, err := w.file.Write(append(text, '\n')); err != nil {
		panic(fmt.Sprintf("the witness cannot write: %v", err))
	}
	if l.What != LineEnd && l.What != LineCall {
		return
	}
	w.last = l.At
	close(w.ended)
	w.ended = make(chan struct{})
	if l.How == HowOK || l.What == LineCall {
		w.done[l.Key] = l.At
	}
}

// Task is the payload of a job: the work for the witness.
type Task struct {
	Key          string `json:"key"`
	MS           int    `json:"ms"`
	FailAttempts int    `json:"failAttempts,omitempty"`
	Kills        bool   `json:"kills,omitempty"`  // it kills the worker that sends it
	Counts       int    `json:"counts,omitempty"` // attempts count to it by checkpoints, each one step
}

// work does the work of a FUNCTION job.
func (w *witness) work(rw http.ResponseWriter, r *http.Request) {
	var t Task
	if json.NewDecoder(r.Body).Decode(&t) != nil {
		return // the sender died
	}
	attempt, _ := strconv.Atoi(r.Header.Get("Ce-Attempt"))
	count, _ := strconv.Atoi(r.Header.Get("X-Checkpoint"))
	l := Line{What: LineStart, Job: r.Header.Get("Ce-Jobid"), Attempt: attempt, Key: t.Key, Count: count}
	w.write(l)
	l.What, l.How = LineEnd, HowOK
	switch {
	case t.Kills:
		if err := w.poison(r.RemoteAddr); err != nil {
			l.How = "not killed: " + err.Error()
		} else {
			l.How = HowCut
		}
	case !retry.Pause(r.Context(), time.Duration(t.MS)*time.Millisecond):
		l.How = HowCut
	case attempt <= t.FailAttempts:
		l.How = HowFailed
	case count < t.Counts:
		l.How, l.Count = HowSnoozed, count+1
		rw.Header().Set("X-Checkpoint", strconv.Itoa(l.Count))
		rw.Header().Set("X-Snooze-Ms", "100")
	}
	w.write(l)
	rw.Header().Set("Content-Type", "application/json")
	if l.How == HowFailed {
		rw.WriteHeader(http.StatusInternalServerError)
		_, _ = fmt.Fprintf(rw, `{"errorCode": %q, "message": "as it was asked to"}`, FailedCode)
		return
	}
	_, _ = fmt.Fprintf(rw, `{"attempt": %d}`, attempt)
}

// FailedCode is the error code of a job that fails on purpose.
const FailedCode = "CHAOS.FAILED"

// call is a step of a SIMULATION job.
func (w *witness) call(_ http.ResponseWriter, r *http.Request) {
	w.write(Line{What: LineCall, Key: r.PathValue("key")})
}

// delivered receives the delivery of a job's end.
func (w *witness) delivered(_ http.ResponseWriter, r *http.Request) {
	var job struct {
		JobID   string `json:"jobId"`
		Status  string `json:"status"`
		Attempt int    `json:"attempt"`
	}
	if json.NewDecoder(r.Body).Decode(&job) != nil {
		return
	}
	w.write(Line{
		What: LineDelivered, Job: job.JobID, Attempt: job.Attempt, How: job.Status, ID: r.Header.Get("Webhook-Id"),
	})
}

// begin records that a pull worker begins an attempt, and watches its connection: if that ends before the attempt has
// reported its end, the worker has died.
func (w *witness) begin(rw http.ResponseWriter, r *http.Request) {
	var l Line
	if json.NewDecoder(r.Body).Decode(&l) != nil {
		return
	}
	w.write(l)
	if http.NewResponseController(rw).Flush() == nil {
		<-r.Context().Done()
	}
	a := attempt{l.Job, l.Attempt}
	w.mu.Lock()
	over := w.over[a]
	delete(w.over, a)
	w.mu.Unlock()
	if !over {
		l.What, l.How = LineEnd, HowCut
		w.write(l)
	}
}

// report records what a pull worker reports about an attempt.
func (w *witness) report(_ http.ResponseWriter, r *http.Request) {
	var l Line
	if json.NewDecoder(r.Body).Decode(&l) != nil {
		return
	}
	if l.What == LineEnd {
		w.mu.Lock()
		w.over[attempt{l.Job, l.Attempt}] = true
		w.mu.Unlock()
	}
	w.write(l)
}

// handed is the request of an EXTERNAL job.
type handed struct {
	JobID    string `json:"jobId"`
	Attempt  int    `json:"attempt"`
	Data     Task   `json:"data"`
	Callback struct {
		URL    string `json:"url"`
		Secret string `json:"secret"`
	} `json:"callback"`
}

// outside accepts an EXTERNAL job, and calls back when it is done.
func (w *witness) outside(_ http.ResponseWriter, r *http.Request) {
	var job handed
	if json.NewDecoder(r.Body).Decode(&job) != nil {
		return
	}
	l := Line{What: LineStart, Job: job.JobID, Attempt: job.Attempt, Key: job.Data.Key}
	w.write(l)
	w.calling.Go(func() {
		if !retry.Pause(w.stopped, time.Duration(job.Data.MS)*time.Millisecond) {
			return
		}
		l.What, l.How = LineEnd, w.callBack(job)
		w.write(l)
	})
}

// callBack repeats the callback until it is accepted or refused.
func (w *witness) callBack(job handed) (how string) {
	body := fmt.Appendf(nil, `{"jobId": %q, "attempt": %d, "status": "COMPLETED", "output": {}}`, job.JobID, job.Attempt)
	for {
		switch status := w.post(job, body); {
		case status == http.StatusOK:
			return HowOK
		case status == http.StatusConflict || status == http.StatusNotFound:
			return howRefused
		case status != 0 && status < http.StatusInternalServerError && status != http.StatusTooManyRequests:
			return "callback answered " + strconv.Itoa(status)
		}
		if !retry.Pause(w.stopped, 300*time.Millisecond) {
			return HowCut
		}
	}
}

func (w *witness) post(job handed, body []byte) (status int) {
	ctx, cancel := context.WithTimeout(w.stopped, callPatience)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, job.Callback.URL, bytes.NewReader(body))
	if err != nil {
		return http.StatusBadRequest
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("X-Callback-Secret", job.Callback.Secret)
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0
	}
	_ = res.Body.Close()
	return res.StatusCode
}

// DoneAt returns when a key's work was done.
func (w *witness) DoneAt(key string) (time.Time, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	at, done := w.done[key]
	return at, done
}

// NextEnd waits for an end of any job after an instant.
func (w *witness) NextEnd(ctx context.Context, after time.Time) (time.Time, bool) {
	for {
		w.mu.Lock()
		last, ended := w.last, w.ended
		w.mu.Unlock()
		if last.After(after) {
			return last, true
		}
		select {
		case <-ended:
		case <-ctx.Done():
			return time.Time{}, false
		}
	}
}

// ReadLines reads a witness file.
func ReadLines(path string) (lines []Line, err error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("read witness file: %w", err)
	}
	defer func() { _ = file.Close() }()
	scan := bufio.NewScanner(file)
	for scan.Scan() {
		var l Line
		if err := json.Unmarshal(scan.Bytes(), &l); err != nil {
			return nil, fmt.Errorf("read witness file: %w", err)
		}
		lines = append(lines, l)
	}
	return lines, scan.Err()
}

const callPatience = 5 * time.Second // for a request to the gateway
