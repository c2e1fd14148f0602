package rejected

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/gin-gonic/gin"

	"github.com/jobweaver/jobweaver/functions/gateway/audit"
	"github.com/jobweaver/jobweaver/functions/gateway/edge"
	"github.com/jobweaver/jobweaver/shared/apidb/rejectedstore"
	"github.com/jobweaver/jobweaver/shared/apierror"
	"github.com/jobweaver/jobweaver/shared/jobevent"
)

// redrivePatience limits how long a redrive waits for the broker: the row is locked meanwhile.
const redrivePatience = 5 * time.Second

// Redrive is POST /api/rejected/{rejectedId}/redrive.
func (a *API) Redrive(c *gin.Context) error {
	id, err := edge.PathID(c, "rejectedId", rejectedstore.ErrNone)
	if err != nil {
		return err
	}
	ctx, cancel := edge.WithPatience(c)
	defer cancel()
	publish := func(ctx context.Context, r rejectedstore.Rejected) error {
		if refusal := a.redriveRefusal(r, time.Now()); refusal != "" {
			return apierror.New(apierror.InvalidStateTransition, "the record is not redriven: %s", refusal)
		}
		ctx, cancel := context.WithTimeout(ctx, redrivePatience)
		defer cancel()
		return redriveError(a.PublishAgain(ctx, r.Record))
	}
	redriven, err := a.Store.Redrive(ctx, audit.Entry(c), id, audit.Actor(c), publish)
	if err != nil {
		return err
	}
	return edge.Answer(c, http.StatusOK, a.newRecord(redriven))
}

func redriveError(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, jobevent.ErrInvalid):
		return apierror.New(apierror.InvalidStateTransition, "the record is not redriven: %s", err)
	}
	away := apierror.New(apierror.Unavailable, "the record may not be on its topic again: try again")
	return fmt.Errorf("%w: %w", err, away)
}

// redriveRefusal returns why a record cannot be redriven; empty: it can. An old record must not be published again: the
// functions may have forgotten that they have handled its job, and would run it once more.
func (a *API) redriveRefusal(r rejectedstore.Rejected, now time.Time) string {
	at := r.RejectedAt
	if r.Record.RecordedAt != nil && r.Record.RecordedAt.Before(at) {
		at = *r.Record.RecordedAt
	}
	topics := a.Queues.Topics()
	known := slices.IndexFunc(topics, func(t jobevent.Topic) bool { return t.Name == r.Record.Topic })
	switch {
	case r.RedrivenAt != nil:
		return fmt.Sprintf("it was redriven at %s by %s; if it was rejected again, that is a rejected record of its own",
			r.RedrivenAt.UTC().Format(time.RFC3339), r.RedrivenBy)
	case r.Record.Truncated:
		return "it was too large to be kept whole"
	case !r.Whole:
		return "the release that rejected it did not keep its key and all of its headers"
	case known < 0:
		return fmt.Sprintf("%s is not a topic of this installation with its queues", r.Record.Topic)
	case r.Record.Topic == jobevent.TopicDeadLetter:
		return "no function acts on records of " + jobevent.TopicDeadLetter
	case topics[known].Compacted:
		return fmt.Sprintf("on %s it would replace a later status of its job; the scheduler publishes the latest one"+
			" again by itself", r.Record.Topic)
	case topics[known].Retention < jobevent.MaxRetention:
		return fmt.Sprintf("a record on %s is valid only for a moment, and a new one follows by itself", r.Record.Topic)
	case now.Sub(at) > jobevent.MaxRetention:
		return fmt.Sprintf("it is older than %d days: its request may be done and forgotten, and would be done again",
			jobevent.MaxRetention/(24*time.Hour))
	}
	return ""
}
