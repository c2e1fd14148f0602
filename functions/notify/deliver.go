package notify

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"time"

	cehttp "github.com/cloudevents/sdk-go/v2/protocol/http"

	"github.com/jobweaver/jobweaver/shared/apidb/deliverystore"
	"github.com/jobweaver/jobweaver/shared/funchost"
	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/jobview"
	"github.com/jobweaver/jobweaver/shared/outbound"
	"github.com/jobweaver/jobweaver/shared/telemetry"
)

const (
	// maxAnswer is how much of an answer is read, so that its connection can be reused. The answer is not stored.
	maxAnswer = 64 << 10
	// maxRetryAfter is the longest Retry-After that counts.
	maxRetryAfter = 24 * time.Hour
	// maxError is how much of an error is stored.
	maxError = 300
	// settleTry is the time for one attempt to store the result of a delivery.
	settleTry = 5 * time.Second
)

// delays are the pauses of Standard Webhooks between two tries. A small part is random, so that deliveries that failed
// together are not retried together.
var delays = []time.Duration{
	5 * time.Second, 5 * time.Minute, 30 * time.Minute, 2 * time.Hour, 5 * time.Hour, 10 * time.Hour, 14 * time.Hour,
	20 * time.Hour, 24 * time.Hour,
}

const jitter = 0.1

var (
	errSlow = errors.New("it did not answer in time")
	errCut  = errors.New("the process stops")

	errUnsent = errors.New("no request can be made of it")
	errSealed = errors.New("what it would say is sealed, and cannot be opened here")
)

// deliver makes one try and stores the result.
func (f *Function) deliver(ctx context.Context, c deliverystore.Claimed) {
	ctx, span := telemetry.TracingOf(ctx).OfJob(ctx, c.Job.TraceID, c.JobID, "deliver "+jobevent.TopicStatus)
	began := time.Now()
	came, err := f.try(ctx, c)
	f.mu.Lock()
	f.hosts.end(c.Place, shown(came, err, time.Since(began)))
	f.mu.Unlock()
	if errors.Is(err, errCut) {
		f.release(ctx, c)
	} else {
		telemetry.Delivered(outcomeOf(came), time.Since(began))
		f.settle(ctx, c, came)
	}
	span.Done(err)
	select {
	case f.wake <- struct{}{}: // there is room for another try
	default:
	}
}

func outcomeOf(came deliverystore.Tried) string {
	switch came.Status {
	case deliverystore.Delivered:
		return telemetry.DeliveryDelivered
	case deliverystore.Failed:
		return telemetry.DeliveryFailed
	case deliverystore.Pending:
	}
	return telemetry.DeliveryRetried
}

// shown returns what the result of a try shows about its host.
func shown(came deliverystore.Tried, err error, took time.Duration) kind {
	switch {
	case errors.Is(err, errCut), errors.Is(err, errUnsent), errors.Is(err, errSealed),
		errors.Is(err, outbound.ErrRefused):
		return fresh // the host was not called
	case err != nil, took > inTime, throttles(came.Answer):
		return slow
	}
	return good
}

// throttles reports whether a host's answer asks for fewer calls, as Standard Webhooks defines it. If such a host
// counted as good, each of its answers would make room for the next delivery at once.
func throttles(status int) bool {
	switch status {
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return true
	}
	return false
}

// settle stores the result of a try, while this process has the lease of the delivery.
func (f *Function) settle(ctx context.Context, c deliverystore.Claimed, came deliverystore.Tried) {
	if came.Status == deliverystore.Failed {
		telemetry.Logger(ctx).WarnContext(ctx, "a delivery has failed for good", telemetry.FieldJobID, c.JobID,
			telemetry.FieldTraceID, c.Job.TraceID, telemetry.FieldAttempt, c.Job.Attempt, "version", c.Version,
			"host", c.Place.Host, "tries", c.Tries, "error", came.Error)
	}
	for last := time.Now().Add(lease - tryMost - settleTry); ; {
		err := withPatience(ctx, func(ctx context.Context) error { return f.store.deliveries.Settle(ctx, c, came) })
		f.writing.Note(ctx, err)
		if err == nil {
			return
		}
		select {
		case <-time.After(time.Second):
		case <-f.cut.Done():
			return
		}
		if time.Now().After(last) {
			return // if it fails, the delivery is made again
		}
	}
}

func (f *Function) release(ctx context.Context, c deliverystore.Claimed) {
	// A delivery that cannot be given back is due again after its lease.
	release := func(ctx context.Context) error { return f.store.deliveries.Release(ctx, c) }
	f.writing.Note(ctx, withPatience(ctx, release))
}

func withPatience(ctx context.Context, do func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, settleTry)
	defer cancel()
	return do(ctx)
}

// try posts a delivery once. It returns an error if there was no answer.
func (f *Function) try(ctx context.Context, c deliverystore.Claimed) (deliverystore.Tried, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	timer := time.AfterFunc(f.tryFor, func() { cancel(errSlow) })
	defer timer.Stop()
	uncut := context.AfterFunc(f.cut, func() { cancel(errCut) })
	defer uncut()
	request, err := f.request(ctx, c)
	if errors.Is(err, errSealed) { // this process may get the key later
		return f.decide(c.Tries, nil, err), err
	}
	if err != nil {
		came := deliverystore.Tried{Status: deliverystore.Failed, Error: errUnsent.Error()}
		return came, fmt.Errorf("%w: %w", errUnsent, err)
	}
	answer, err := f.client.Do(request, maxAnswer)
	return f.decide(c.Tries, answer, err), err
}

// decide returns the next state of a delivery after its n-th try.
func (f *Function) decide(n int, answer *outbound.Answer, err error) deliverystore.Tried {
	came := deliverystore.Tried{Status: deliverystore.Pending}
	switch {
	case outbound.IsFinal(err):
		return deliverystore.Tried{Status: deliverystore.Failed, Error: short(err)}
	case err != nil:
		came.Error = short(err)
	default:
		came.Answer = answer.Status
		switch {
		case answer.Status/100 == 2:
			came.Status = deliverystore.Delivered
			return came
		case answer.Status == http.StatusGone:
			came.Status, came.Error = deliverystore.Failed, "it answered 410: it wants no more"
			return came
		case answer.Status/100 == 3:
			came.Error = fmt.Sprintf("it answered %d: redirects are not followed", answer.Status)
		default:
			came.Error = fmt.Sprintf("it answered %d", answer.Status)
		}
		came.Wait = min(answer.RetryAfter, maxRetryAfter)
	}
	if n > len(f.delays) {
		came.Status = deliverystore.Failed
		return came
	}
	delay := f.delays[n-1]
	came.Wait = max(came.Wait, delay+time.Duration(float64(delay)*jitter*rand.Float64()))
	return came
}

// short returns an error's text, cut to the size of its column.
func short(err error) string {
	text := strings.ReplaceAll(strings.ToValidUTF8(err.Error(), "?"), "\x00", "?")
	return strings.ToValidUTF8(text[:min(len(text), maxError)], "")
}

// ended is the body of a delivery. It contains the event type, because headers are not signed, and the owner, as every
// Summary does.
type ended struct {
	Type string `json:"type"`
	jobview.Summary
}

// request returns the ended job as a CloudEvent, signed for this try.
func (f *Function) request(ctx context.Context, c deliverystore.Claimed) (*http.Request, error) {
	if c.Broken != nil {
		return nil, c.Broken
	}
	if jobview.Open(&c.Job, f.sealer); len(c.Job.Sealed) > 0 {
		return nil, errSealed
	}
	id := jobevent.StatusID(c.JobID, c.Version)
	end, err := jobevent.New(jobevent.TypeStatus, jobevent.Meta{
		Function: Name, ID: id, JobID: c.JobID, TraceID: c.Job.TraceID,
	}, ended{jobevent.TypeStatus, jobview.New(c.Job)})
	if err != nil {
		return nil, err
	}
	end.SetTime(c.Job.UpdatedAt)
	telemetry.SetHere(ctx, &end, jobevent.JobSpanID(c.JobID))
	e := end.Event()
	e.SetExtension(jobevent.ExtPartitionKey, nil) // of a topic
	request, err := cehttp.NewHTTPRequestFromEvent(ctx, c.URL, e)
	if err != nil {
		return nil, fmt.Errorf("make a request of event %s: %w", id, err)
	}
	request.Header.Set("User-Agent", "jobweaver/"+funchost.Version)
	request.Header.Set("Traceparent", end.TraceParent())
	f.signer.Sign(request.Header, c.Job.OwnerID, id, time.Now(), e.Data())
	return request, nil
}
