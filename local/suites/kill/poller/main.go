// Command poller is a pull worker of the job type WITNESS, which records in a file what it does. It breaks the rules
// in one way: it sends the result of a lost attempt all the same.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/signal"
	"strconv"
	"sync"
	"syscall"
	"time"

	"github.com/google/uuid"

	"github.com/jobweaver/jobweaver/local/suites/kill/witness"
	"github.com/jobweaver/jobweaver/shared/apierror"
	"github.com/jobweaver/jobweaver/shared/client"
	"github.com/jobweaver/jobweaver/shared/pullwire"
	"github.com/jobweaver/jobweaver/shared/retry"
)

const (
	slots     = 16
	claimWait = 2 * time.Second
	// beyond is how long an answer may take beyond a claim's wait. A later answer would have attempts that were lost
	// or cancelled meanwhile, which takes pull 5 s.
	beyond         = 2 * time.Second
	heartbeatEvery = time.Second
	// silence is how long a handler continues without an answered heartbeat: less than the 7 s after which a worker
	// may settle the attempts of a killed pull, whose last heartbeat was up to 3 s old.
	silence = 4500 * time.Millisecond
	pace    = 200 * time.Millisecond // between two tries
)

// Reasons for which a handler is ended.
var (
	errCancelled = errors.New("the attempt was cancelled")
	errLost      = errors.New("the attempt is lost")
	errSilent    = errors.New("no heartbeat was answered")
)

type poller struct {
	api  *client.Client
	file *witness.Writer
	name string

	mu   sync.Mutex
	held map[string]*held // by token
	room chan struct{}    // has a value when held became smaller
}

// held is an attempt from its claim until its result was answered.
type held struct {
	pullwire.Attempt
	end  context.CancelCauseFunc // of its handler
	seen time.Time               // when the last claim or heartbeat was sent whose answer named it
}

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run() error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	file, err := witness.Open(os.Getenv("WITNESS_FILE"), os.Getenv("WITNESS_NAME"))
	if err != nil {
		return err
	}
	p := &poller{
		api: client.New(os.Getenv("GATEWAY_URL"), "", client.WithRetries(0)), file: file, name: os.Getenv("WITNESS_NAME"),
		held: map[string]*held{}, room: make(chan struct{}, 1),
	}
	var all sync.WaitGroup
	all.Go(func() { p.heartbeats(ctx) })
	for ctx.Err() == nil {
		for _, h := range p.claim(ctx) {
			all.Go(func() { p.execute(ctx, h) })
		}
	}
	all.Wait()
	return nil
}

// post sends a request once, and waits up to d for its answer.
func (p *poller) post(ctx context.Context, d time.Duration, path string, in map[string]any, out any) error {
	ctx, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	in["worker"] = p.name
	body, err := json.Marshal(in)
	if err != nil {
		return err
	}
	_, err = p.api.Do(ctx, http.MethodPost, path, "application/json", body, out)
	return err
}

// claim returns new attempts as soon as there are some and room for them.
func (p *poller) claim(ctx context.Context) (got []*held) {
	p.mu.Lock()
	free := slots - len(p.held)
	p.mu.Unlock()
	if free == 0 {
		select {
		case <-p.room:
		case <-ctx.Done():
		}
		return nil
	}
	var answer pullwire.Attempts
	sent := time.Now()
	err := p.post(ctx, claimWait+beyond, "/api/workers/claim", map[string]any{
		"types": []string{"WITNESS"}, "slots": free, "wait": claimWait.String(),
	}, &answer)
	if err != nil {
		retry.Pause(ctx, pace)
		return nil
	}
	if time.Since(sent) > claimWait+beyond {
		return nil // this process was frozen: the attempts are over, or will be
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, a := range answer.Attempts {
		h := &held{Attempt: a, seen: time.Now(), end: func(error) {}}
		p.held[a.Token] = h
		got = append(got, h)
	}
	return got
}

// execute runs an attempt and settles it.
func (p *poller) execute(ctx context.Context, h *held) {
	defer p.drop(h)
	var payload witness.Payload
	if err := json.Unmarshal(h.Payload, &payload); err != nil {
		p.fail(err)
	}
	working, end := context.WithCancelCause(ctx)
	defer end(nil)
	p.mu.Lock()
	h.end = end
	p.mu.Unlock()
	p.record(h, payload.Key, witness.Start, "")
	err := p.count(working, h, payload)
	var stand standing
	if err == nil {
		stand, err = p.await(working, h, payload)
	}
	if err == nil {
		err = payload.Work(working)
	}
	result := map[string]any{"token": h.Token}
	how := witness.OK
	switch {
	case errors.Is(err, errCancelled):
		how = err.Error()
		result["status"] = "FAILED"
	case errors.Is(err, errLost):
		how = err.Error()
		result["status"] = "COMPLETED"
	case err != nil: // silence, or the end of this process
		p.record(h, payload.Key, witness.End, err.Error())
		return
	case stand.failed:
		how = witness.Failed
		result["status"], result["errorCode"], result["retryable"] = "FAILED", apierror.ChildFailed, false
	case stand.delay > 0:
		how = witness.Snoozed
		result["status"], result["delayMs"] = "SNOOZED", stand.delay.Milliseconds()
	case h.Attempt.Attempt <= payload.FailAttempts:
		how = witness.Failed
		result["status"], result["errorCode"], result["retryable"] = "FAILED", witness.ErrorCode, !payload.Fatal
	case h.Attempt.Attempt <= payload.SnoozeAttempts:
		how = witness.Snoozed
		result["status"], result["delayMs"] = "SNOOZED", 300
	case payload.Waits:
		result["status"], result["callbackTimeoutMs"] = "WAITING", 600_000
	default:
		result["status"], result["output"] = "COMPLETED", stand.output(h.Attempt.Attempt)
	}
	p.record(h, payload.Key, witness.End, how)
	p.settle(ctx, h, payload.Key, result)
}

// count counts on from the checkpoint, and records each number once it is saved.
func (p *poller) count(ctx context.Context, h *held, payload witness.Payload) error {
	if payload.Counts == 0 {
		return nil
	}
	n := 0
	if h.Checkpoint != nil {
		if err := json.Unmarshal(h.Checkpoint, &n); err != nil {
			p.fail(err)
		}
	}
	p.record(h, payload.Key, witness.Loaded, strconv.Itoa(n))
	for n < payload.Counts {
		if !retry.Pause(ctx, witness.CountEvery) {
			return context.Cause(ctx)
		}
		n++
		if err := p.save(ctx, h, n); err != nil {
			return err
		}
		p.record(h, payload.Key, witness.Saved, strconv.Itoa(n))
	}
	return nil
}

// save sends a checkpoint until an answer gives its fate.
func (p *poller) save(ctx context.Context, h *held, n int) error {
	for ctx.Err() == nil {
		var answer pullwire.Settled
		err := p.post(ctx, 12*time.Second, "/api/workers/checkpoint", map[string]any{
			"checkpoints": []any{map[string]any{"token": h.Token, "number": n, "checkpoint": n}},
		}, &answer)
		switch {
		case err != nil || len(answer.Results) != 1 || answer.Results[0].Status == http.StatusServiceUnavailable:
			retry.Pause(ctx, pace)
		case answer.Results[0].Status == http.StatusOK:
			return nil
		default:
			return errLost
		}
	}
	return context.Cause(ctx)
}

// settle sends a result until an answer gives its fate.
func (p *poller) settle(ctx context.Context, h *held, key string, result map[string]any) {
	for again := ""; ctx.Err() == nil; again = witness.Again {
		var answer pullwire.Settled
		err := p.post(ctx, 12*time.Second, "/api/workers/settle", map[string]any{"results": []any{result}}, &answer)
		if err == nil && len(answer.Results) == 1 && answer.Results[0].Status != http.StatusServiceUnavailable {
			p.record(h, key, witness.Answered, fmt.Sprint(answer.Results[0].Status, again))
			return
		}
		retry.Pause(ctx, pace)
	}
}

func (p *poller) drop(h *held) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.held, h.Token)
	select {
	case p.room <- struct{}{}:
	default:
	}
}

// heartbeats sends heartbeats with the held attempts, and ends the handlers of attempts that are over, cancelled, or
// perhaps lost because no heartbeat was answered.
func (p *poller) heartbeats(ctx context.Context) {
	for retry.Pause(ctx, heartbeatEvery) {
		attempts := []any{}
		p.mu.Lock()
		for token := range p.held {
			attempts = append(attempts, map[string]any{"token": token})
		}
		p.mu.Unlock()
		if len(attempts) == 0 {
			continue
		}
		var answer pullwire.HeartbeatAnswer
		sent := time.Now()
		err := p.post(ctx, 2*heartbeatEvery, "/api/workers/heartbeat", map[string]any{"attempts": attempts}, &answer)
		p.mu.Lock()
		for token, h := range p.held {
			switch {
			case err == nil && h.seen.Before(sent):
				h.seen = sent
			case time.Since(h.seen) > silence:
				p.held[token].end(errSilent)
			}
		}
		for _, token := range answer.Cancelled {
			p.end(token, errCancelled)
		}
		for _, token := range answer.Lost {
			p.end(token, errLost)
		}
		p.mu.Unlock()
	}
}

// end ends a handler. The caller holds the mutex.
func (p *poller) end(token string, why error) {
	if h := p.held[token]; h != nil {
		h.end(why)
	}
}

func (p *poller) record(h *held, key, what, how string) {
	line := witness.Line{What: what, Job: uuid.MustParse(h.JobID), Attempt: h.Attempt.Attempt, Key: key, How: how}
	if err := p.file.Write(line); err != nil {
		p.fail(err)
	}
}

// fail ends the process: with an incomplete witness file the test would report false violations.
func (p *poller) fail(err error) {
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}
