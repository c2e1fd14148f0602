package jobevent

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/uuid"
)

// follower is the data of an item that may differ from the item before it, in the same event, only in its job, its
// trace, and a few members of its own. Then the event has only these, as an array.
// Why: docs/decisions/events.md#an-item-like-the-one-before-it-is-an-array
type follower interface {
	named
	ownJSON() json.RawMessage  // its payload or output; nil: none
	follows(before any) bool   // whether all but the own members agree with the data before it
	appendOwn(b []byte) []byte // appends its own members, each after a comma
	size() int                 // about how many bytes it has
}

// followed reads what appendOwn has written into a copy of the data before it.
type followed interface {
	ownJSON() json.RawMessage
	readOwn(job uuid.UUID, dec *jsontext.Decoder) error
}

// maxShared is how many bytes an item may have beside its own JSON, if others follow it: each of them has these bytes,
// too, once it is read, and a small event must not become a large one.
const maxShared = 4 << 10

func (c *Created) follows(before any) bool {
	b, ok := before.(*Created)
	return ok && c.OwnerID == b.OwnerID && c.FairnessKey == b.FairnessKey && c.JobType == b.JobType &&
		c.Queue == b.Queue && c.Awaited == b.Awaited && c.CreatedAt.Equal(b.CreatedAt) && sameTime(c.RunAt, b.RunAt) &&
		sameTime(c.ExpiresAt, b.ExpiresAt) && c.Spec.Equal(&b.Spec) && c.isPlain() && b.isPlain()
}

// isPlain reports whether the job has none of the members that few jobs share with others.
func (c *Created) isPlain() bool {
	return c.OrderingKey == "" && c.OrderNumber == 0 && c.OrderAfter == nil && c.After == nil && !c.RunAnyway &&
		c.Conditions == nil && c.Inputs == nil && c.FlowID == uuid.Nil && c.Event == nil
}

func (c *Created) appendOwn(b []byte) []byte { return appendRaw(b, c.Payload) }

func (c *Created) ownJSON() json.RawMessage { return c.Payload }

func (c *Created) size() int {
	return len(c.Payload) + len(c.Event) + 40*len(c.After) + 100*len(c.Inputs) + 200
}

func (c *Created) readOwn(job uuid.UUID, dec *jsontext.Decoder) (err error) {
	c.JobID = job
	c.Payload, err = readRaw(dec)
	return err
}

func (r *Run) follows(before any) bool {
	b, ok := before.(*Run)
	return ok && r.JobType == b.JobType && r.OwnerID == b.OwnerID && r.FairnessKey == b.FairnessKey &&
		r.Rank.Equal(b.Rank) && r.Prompt == b.Prompt && sameTime(r.ExpiresAt, b.ExpiresAt) && r.Spec.Equal(&b.Spec) &&
		r.isPlain() && b.isPlain()
}

func (r *Run) isPlain() bool { return !r.Cancel && r.Parents == nil && r.Event == nil }

func (r *Run) appendOwn(b []byte) []byte {
	return appendRaw(strconv.AppendInt(append(b, ','), int64(r.Attempt), 10), r.Payload)
}

func (r *Run) ownJSON() json.RawMessage { return r.Payload }

func (r *Run) size() int { return len(r.Payload) + len(r.Parents) + len(r.Event) + 200 }

func (r *Run) readOwn(job uuid.UUID, dec *jsontext.Decoder) (err error) {
	r.JobID = job
	if r.Attempt, err = readInt(dec); err == nil {
		r.Payload, err = readRaw(dec)
	}
	return err
}

func (c *Completed) follows(before any) bool {
	b, ok := before.(*Completed)
	return ok && c.WorkerID == b.WorkerID && c.RanBy == b.RanBy
}

func (c *Completed) appendOwn(b []byte) []byte {
	b = strconv.AppendInt(append(b, ','), int64(c.Attempt), 10)
	b = appendTime(appendTime(b, c.StartedAt), c.FinishedAt)
	if c.Output == nil {
		return b
	}
	return appendRaw(b, c.Output)
}

func (c *Completed) ownJSON() json.RawMessage { return c.Output }

func (c *Completed) size() int { return len(c.Output) + 200 }

func (e *ended) ownJSON() json.RawMessage { return e.Output }

func (e *ended) readOwn(job uuid.UUID, dec *jsontext.Decoder) (err error) {
	e.JobID, e.StartedAt, e.Output = job, new(time.Time), nil
	if e.Attempt, err = readInt(dec); err != nil {
		return err
	}
	if *e.StartedAt, err = readTime(dec); err != nil {
		return err
	}
	if e.FinishedAt, err = readTime(dec); err != nil {
		return err
	}
	if dec.PeekKind() != ']' {
		e.Output, err = readRaw(dec)
	}
	return err
}

func sameTime(a, b *time.Time) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.Equal(*b)
}

func appendRaw(b []byte, raw json.RawMessage) []byte {
	if raw == nil {
		return append(b, ",null"...)
	}
	return append(append(b, ','), raw...)
}

func readRaw(dec *jsontext.Decoder) (json.RawMessage, error) {
	raw, err := dec.ReadValue()
	return json.RawMessage(raw.Clone()), err
}

// appendTime appends a time of UTC.
func appendTime(b []byte, at time.Time) []byte {
	return append(at.AppendFormat(append(b, `,"`...), time.RFC3339Nano), '"')
}

func readTime(dec *jsontext.Decoder) (at time.Time, err error) {
	raw, err := dec.ReadValue()
	if err == nil {
		err = at.UnmarshalJSON(raw)
	}
	return at, err
}

func readInt(dec *jsontext.Decoder) (int, error) {
	raw, err := dec.ReadValue()
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(string(raw))
}

func appendUUID(b []byte, id uuid.UUID) []byte {
	b = hex.AppendEncode(b, id[:4])
	b = hex.AppendEncode(append(b, '-'), id[4:6])
	b = hex.AppendEncode(append(b, '-'), id[6:8])
	b = hex.AppendEncode(append(b, '-'), id[8:10])
	return hex.AppendEncode(append(b, '-'), id[10:])
}

func readUUID(dec *jsontext.Decoder) (uuid.UUID, error) {
	raw, err := dec.ReadValue()
	if err == nil && raw.Kind() != '"' {
		err = fmt.Errorf("%.40s is not a UUID", raw)
	}
	if err != nil {
		return uuid.Nil, err
	}
	return uuid.ParseBytes(raw[1 : len(raw)-1])
}
