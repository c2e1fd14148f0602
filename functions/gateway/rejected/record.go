package rejected

import (
	"encoding/base64"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"

	"github.com/jobweaver/jobweaver/shared/apidb/rejectedstore"
	"github.com/jobweaver/jobweaver/shared/client"
	"github.com/jobweaver/jobweaver/shared/jobview"
)

// record is a rejected record in a list.
type record struct {
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

// wholeRecord is a rejected record in its own response.
type wholeRecord struct {
	record
	Key     *client.RecordBytes `json:"key"`
	Headers []recordHeader      `json:"headers"`
	Value   *client.RecordBytes `json:"value"`
}

type recordHeader struct {
	Name  string              `json:"name"`
	Value *client.RecordBytes `json:"value"`
}

// newRecordBytes shows bytes as text if they are UTF-8, and as base64 otherwise.
func newRecordBytes(b []byte) *client.RecordBytes {
	switch {
	case b == nil:
		return nil
	case utf8.Valid(b):
		return &client.RecordBytes{Encoding: "text", Data: string(b)}
	}
	return &client.RecordBytes{Encoding: "base64", Data: base64.StdEncoding.EncodeToString(b)}
}

func (a *API) newRecord(r rejectedstore.Rejected) record {
	shown := record{
		ID: r.ID, Function: r.Function, Topic: r.Record.Topic, Reason: r.Record.Reason, Bytes: r.Bytes,
		Truncated: r.Record.Truncated, RecordedAt: jobview.UTC(r.Record.RecordedAt), RejectedAt: r.RejectedAt.UTC(),
		RedriveRefusal: jobview.Given(a.redriveRefusal(r, time.Now())), RedrivenAt: jobview.UTC(r.RedrivenAt),
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
