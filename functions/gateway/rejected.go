package gateway

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/gin-gonic/gin"
	"github.com/google/uuid"

	"github.com/jobweaver/jobweaver/functions/gateway/edge"
	"github.com/jobweaver/jobweaver/shared/apidb/rejectedstore"
	"github.com/jobweaver/jobweaver/shared/apierror"
	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/jobview"
)

// redrivePatience bounds how long a redrive waits for the broker: the row is locked meanwhile.
const redrivePatience = 5 * time.Second

// rejectedRecord is one as a list shows it.
type rejectedRecord struct {
	ID             uuid.UUID  `json:"id"`
	Function       string     `json:"function"`
	Topic          string     `json:"topic"`
	Partition      *int32     `json:"partition"`
	Offset         *int64     `json:"offset"`
	Reason         string     `json:"reason"`
	Bytes          int        `json:"bytes"`
	Truncated      bool       `json:"truncated"`
	TraceID        *uuid.UUID `json:"traceId"`
	RecordedAt     *time.Time `json:"recordedAt"`
	RejectedAt     time.Time  `json:"rejectedAt"`
	RedriveRefusal *string    `json:"redriveRefusal"`
	RedrivenAt     *time.Time `json:"redrivenAt"`
	RedrivenBy     *string    `json:"redrivenBy"`
}

// wholeRejected is one with all that the record has.
type wholeRejected struct {
	rejectedRecord
	Key     *recordBytes   `json:"key"`
	Headers []recordHeader `json:"headers"`
	Value   *recordBytes   `json:"value"`
}

type recordHeader struct {
	Name  string       `json:"name"`
	Value *recordBytes `json:"value"`
}

// recordBytes are bytes as text where they are UTF-8, else as base64.
type recordBytes struct {
	Encoding string `json:"encoding"`
	Data     string `json:"data"`
}

func newRecordBytes(b []byte) *recordBytes {
	switch {
	case b == nil:
		return nil
	case utf8.Valid(b):
		return &recordBytes{"text", string(b)}
	}
	return &recordBytes{"base64", base64.StdEncoding.EncodeToString(b)}
}

func (f *Function) newRejectedRecord(r rejectedstore.Rejected) rejectedRecord {
	shown := rejectedRecord{
		ID: r.ID, Function: r.Function, Topic: r.Record.Topic, Reason: r.Record.Reason, Bytes: r.Bytes,
		Truncated: r.Record.Truncated, RecordedAt: jobview.UTC(r.Record.RecordedAt), RejectedAt: r.RejectedAt.UTC(),
		RedriveRefusal: jobview.Given(f.redriveRefusal(r, time.Now())), RedrivenAt: jobview.UTC(r.RedrivenAt),
		RedrivenBy: jobview.Given(r.RedrivenBy),
	}
	if r.Record.Offset >= 0 {
		shown.Partition, shown.Offset = &r.Record.Partition, &r.Record.Offset
	}
	if r.TraceID != uuid.Nil {
		shown.TraceID = &r.TraceID
	}
	return shown
}

// redriveRefusal is why a record is not put on its topic again; empty: it can be. What came long ago must not come
// again: the functions may have forgotten that they have dealt with its job, and would run it once more.
func (f *Function) redriveRefusal(r rejectedstore.Rejected, now time.Time) string {
	at := r.RejectedAt
	if r.Record.RecordedAt != nil && r.Record.RecordedAt.Before(at) {
		at = *r.Record.RecordedAt
	}
	topics := jobevent.Topics(f.cfg.Queues)
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
		return fmt.Sprintf("%s is no topic of this installation and its QUEUES", r.Record.Topic)
	case r.Record.Topic == jobevent.TopicDeadLetter:
		return "no function acts on what is on " + jobevent.TopicDeadLetter
	case topics[known].Compacted:
		return fmt.Sprintf("on %s it would take the place of a later status of its job; the scheduler publishes the latest"+
			" again by itself", r.Record.Topic)
	case topics[known].Retention < jobevent.MaxRetention:
		return fmt.Sprintf("what is on %s holds for a moment only, and is published again by itself", r.Record.Topic)
	case now.Sub(at) > jobevent.MaxRetention:
		return fmt.Sprintf("it is older than %d days: what it asks for may be done and forgotten, and would be done again",
			jobevent.MaxRetention/(24*time.Hour))
	}
	return ""
}

type rejectedPage struct {
	Rejected   []rejectedRecord `json:"rejected"`
	NextCursor *string          `json:"nextCursor"`
}

// listRejected is GET /api/rejected: pages by key, newest first. The cursor is the number of the last one.
func (f *Function) listRejected(c *gin.Context) error {
	q := edge.Query{Values: c.Request.URL.Query()}
	filter := rejectedstore.Filter{
		Function: q.One("function"), Topic: q.One("topic"), Since: q.Instant("since"), Until: q.Instant("until"),
		Redriven: q.Boolean("redriven"), Before: q.Number("cursor"), Limit: q.Integer("limit", defaultLimit, 1, maxLimit),
	}
	if err := q.Close("function", "topic", "since", "until", "redriven", "cursor", "limit"); err != nil {
		return err
	}
	ctx, cancel := edge.WithPatience(c)
	defer cancel()
	found, more, err := f.store.rejected.List(ctx, filter)
	if err != nil {
		return err
	}
	body := rejectedPage{Rejected: make([]rejectedRecord, len(found))}
	for i, r := range found {
		body.Rejected[i] = f.newRejectedRecord(r)
	}
	if more {
		cursor := strconv.FormatInt(found[len(found)-1].Cursor(), 10)
		body.NextCursor = &cursor
	}
	return f.show(c, body)
}

// getRejected is GET /api/rejected/{rejectedId}.
func (f *Function) getRejected(c *gin.Context) error {
	id, err := rejectedID(c)
	if err != nil {
		return err
	}
	ctx, cancel := edge.WithPatience(c)
	defer cancel()
	found, err := f.store.rejected.Get(ctx, id)
	if err != nil {
		return err
	}
	body := wholeRejected{
		rejectedRecord: f.newRejectedRecord(found), Key: newRecordBytes(found.Record.Key),
		Headers: make([]recordHeader, len(found.Record.RecordHeaders)), Value: newRecordBytes(found.Record.Value),
	}
	for i, header := range found.Record.RecordHeaders {
		body.Headers[i] = recordHeader{string(header.Key), newRecordBytes(header.Value)}
	}
	return f.show(c, body)
}

// redriveRejected is POST /api/rejected/{rejectedId}/redrive.
func (f *Function) redriveRejected(c *gin.Context) error {
	id, err := rejectedID(c)
	if err != nil {
		return err
	}
	ctx, cancel := edge.WithPatience(c)
	defer cancel()
	redriven, err := f.store.rejected.Redrive(ctx, id, by(c), func(ctx context.Context, r rejectedstore.Rejected) error {
		if refusal := f.redriveRefusal(r, time.Now()); refusal != "" {
			return apierror.New(apierror.InvalidStateTransition, "the record is not redriven: %s", refusal)
		}
		ctx, cancel := context.WithTimeout(ctx, redrivePatience)
		defer cancel()
		return redriveError(f.cfg.Redrive(ctx, r.Record))
	})
	if err != nil {
		return err
	}
	c.JSON(http.StatusOK, f.newRejectedRecord(redriven))
	return nil
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

// discardRejected is DELETE /api/rejected/{rejectedId}.
func (f *Function) discardRejected(c *gin.Context) error {
	id, err := rejectedID(c)
	if err != nil {
		return err
	}
	ctx, cancel := edge.WithPatience(c)
	defer cancel()
	gone, err := f.store.rejected.Discard(ctx, id)
	if err != nil {
		return err
	}
	c.JSON(http.StatusOK, f.newRejectedRecord(gone))
	return nil
}

// rejectedID is the path's; one that is no UUID names no record.
func rejectedID(c *gin.Context) (uuid.UUID, error) {
	id, ok := edge.ParseID(c.Param("rejectedId"))
	if !ok {
		return id, rejectedstore.ErrNone
	}
	return id, nil
}
