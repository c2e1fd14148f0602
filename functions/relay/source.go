package relay

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/cenkalti/backoff/v5"
	"golang.org/x/sync/errgroup"

	"github.com/jobweaver/jobweaver/shared/client"
	"github.com/jobweaver/jobweaver/shared/funchost"
	"github.com/jobweaver/jobweaver/shared/outboxdb"
	"github.com/jobweaver/jobweaver/shared/retry"
	"github.com/jobweaver/jobweaver/shared/telemetry"
)

const (
	// plainPasses is how many passes over rows without an orderingKey one relay makes at once, each on its own
	// connection, so that a new row need not wait for a pass that waits for the gateway. Rows with a key have one pass
	// at a time.
	plainPasses = 3
	// soon and poll bound the pauses after which a lane looks again without a notification. A transaction that sees a
	// busy lane sends none, and may commit later, so the first pause after a busy time is soon. Each further pause is
	// twice as long, up to poll.
	soon = 5 * time.Millisecond
	poll = time.Second
	// passMost is the longest time that a pass may take, including the gateway's answer.
	passMost = submitMost + 5*time.Second
	// A failed pass is repeated after firstPause, and after twice as long each time, up to longestPause.
	firstPause   = 50 * time.Millisecond
	longestPause = 2 * time.Second
	// quick is how long a look from the first row on may take to be made every time. A slower look meets locked rows,
	// or dead rows that vacuum cannot remove yet: then such looks get a twentieth of the time, and the other looks
	// begin behind the taken rows.
	quick, sweepShare = 2 * time.Millisecond, 20
	// countEvery is the interval between reads of the figures, unless these would take more than a fiftieth of the
	// time.
	countEvery, countShare = 15 * time.Second, 50
)

// source is one outbox.
type source struct {
	outbox         *outboxdb.Outbox
	gateway        *client.Client
	plain, ordered *lane

	databaseTrouble, gatewayTrouble telemetry.Trouble

	mu     sync.Mutex
	most   int                         // rows of a pass; fewer after failures, which large batches may cause
	pauses *backoff.ExponentialBackOff // after failures in a row
	until  time.Time                   // when the next pass may begin
}

func newSource(outbox *outboxdb.Outbox, gateway *client.Client) *source {
	return &source{
		outbox: outbox, gateway: gateway, plain: newLane(false), ordered: newLane(true), most: outboxdb.MaxRows,
		pauses:          retry.Backoff(firstPause, longestPause),
		databaseTrouble: telemetry.Trouble{What: "take rows of the outbox of " + outbox.Name()},
		gatewayTrouble:  telemetry.Trouble{What: "submit jobs of the outbox of " + outbox.Name()},
	}
}

// begin starts the goroutines of a source, which end with ctx.
func (s *source) begin(ctx context.Context, all *errgroup.Group) {
	wake := make(chan struct{}, 1)
	all.Go(func() error { funchost.Listen(ctx, wake, s.outbox.Listen); return nil })
	all.Go(func() error {
		for {
			select {
			case <-ctx.Done():
				return nil
			case <-wake:
				s.plain.wake()
				s.ordered.wake()
			}
		}
	})
	all.Go(func() error { s.count(ctx); return nil })
	for _, l := range []*lane{s.plain, s.ordered} {
		all.Go(func() error { l.tick(ctx, s.look); return nil })
		for range l.passes {
			all.Go(func() error { s.work(ctx, l); return nil })
		}
	}
}

// work makes passes over a lane whenever it is woken.
func (s *source) work(ctx context.Context, l *lane) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-l.woken:
		}
		for more := true; more && s.rest(ctx); {
			more = s.pass(ctx, l)
		}
	}
}

// look reports whether there is a row for a pass. An idle relay looks before each pass, because a look takes one round
// trip and a pass without rows three or four.
func (s *source) look(ctx context.Context, l *lane) bool {
	ctx, cancel := context.WithTimeout(ctx, passMost)
	defer cancel()
	from, began := l.from(time.Now()), time.Now()
	there, err := s.outbox.HasRows(ctx, l.ordered, from)
	switch {
	case err != nil: // the pass records the error
		return true
	case !there:
		l.foundNothing(from, time.Since(began))
	case from == 0:
		l.again() // the pass begins where the row was found
	}
	return there
}

// pass takes rows once. more reports whether the caller should look again at once.
func (s *source) pass(ctx context.Context, l *lane) (more bool) {
	bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), passMost)
	defer cancel()
	s.mu.Lock()
	most := s.most
	s.mu.Unlock()
	from := l.from(time.Now())
	began, submitted := time.Now(), false
	taken, err := s.outbox.Take(bounded, l.ordered, from, most,
		func(ctx context.Context, rows []outboxdb.Row) (outboxdb.Verdict, error) {
			submitted = true
			l.looked(from, rows[len(rows)-1].Position, time.Since(began))
			if len(rows) >= outboxdb.ManyRows {
				l.busy() // another pass can take rows that are committed meanwhile
			}
			ctx, cancel := context.WithTimeout(ctx, submitMost)
			defer cancel()
			return s.submit(ctx, rows)
		})
	if !submitted && err == nil {
		l.foundNothing(from, time.Since(began))
	}
	telemetry.Relayed(s.outbox.Name(), taken.Accepted, taken.Rejected)
	s.note(ctx, taken, err, submitted)
	switch {
	case err != nil && submitted && taken.Rows == 1:
		l.skip(taken.Last) // other jobs need not wait for a job at which the gateway fails
	case err != nil:
		l.again()
	}
	if taken.Rejected > 0 {
		telemetry.Logger(ctx).WarnContext(ctx, "the gateway has rejected jobs of an outbox: jobweaver outbox list shows them",
			"database", s.outbox.Name(), "jobs", taken.Rejected)
	}
	return err != nil || taken.Rows >= outboxdb.ManyRows
}

// note applies the result of a pass to the next ones.
func (s *source) note(ctx context.Context, taken outboxdb.Taken, err error, submitted bool) {
	// If a verdict could not be written, the database failed. Any other error after submit is the gateway's.
	atGateway := err != nil && submitted && !errors.Is(err, outboxdb.ErrDatabase)
	switch {
	case atGateway:
		telemetry.RelayFailed(s.outbox.Name(), telemetry.RelayAtGateway)
		s.gatewayTrouble.Note(ctx, err)
	case err != nil:
		telemetry.RelayFailed(s.outbox.Name(), telemetry.RelayAtDatabase)
		s.databaseTrouble.Note(ctx, err)
	default:
		s.databaseTrouble.Note(ctx, nil)
		if submitted {
			s.gatewayTrouble.Note(ctx, nil)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case err == nil && submitted:
		s.most = min(2*s.most, outboxdb.MaxRows)
		s.pauses.Reset()
	case err == nil && !s.gatewayTrouble.Ongoing():
		s.pauses.Reset()
	case err != nil:
		pause := s.pauses.NextBackOff()
		var refused *client.Error
		if errors.As(err, &refused) {
			pause = max(pause, min(refused.RetryAfter, time.Minute))
		}
		s.until = time.Now().Add(pause)
		if atGateway {
			s.most = max(min(s.most, taken.Rows)/2, 1)
		}
	}
}

// rest waits until a pass may begin; false: ctx has ended.
func (s *source) rest(ctx context.Context) bool {
	s.mu.Lock()
	left := time.Until(s.until)
	s.mu.Unlock()
	if left <= 0 {
		return ctx.Err() == nil
	}
	select {
	case <-ctx.Done():
		return false
	case <-time.After(left):
		return ctx.Err() == nil
	}
}

// count updates the metrics of the outbox.
func (s *source) count(ctx context.Context) {
	for {
		began := time.Now()
		figures, err := s.outbox.Figures(ctx)
		if err == nil {
			telemetry.Outbox(s.outbox.Name(), figures.Waiting, figures.Rejected, figures.Oldest)
		} else if ctx.Err() == nil {
			telemetry.RelayFailed(s.outbox.Name(), telemetry.RelayAtDatabase)
			s.databaseTrouble.Note(ctx, err)
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(max(countEvery, countShare*time.Since(began))):
		}
	}
}
