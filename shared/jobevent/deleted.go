package jobevent

import (
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/jobweaver/jobweaver/shared/jobstate"
)

// How a deleted job had ended, for a consumer that has missed the status with the end: a compacted topic keeps only the
// tombstone, and another process may publish that status later.
const (
	extEndedAs = "jobendedas" // COMPLETED, FAILED or CANCELLED; the other extensions accompany it
	extEndedAt = "jobendedat"
	extAttempt = "jobattempt"
	extErrorOf = "joberrorcode" // absent: none
)

// End is the end of a job.
type End struct {
	Status    string
	At        time.Time
	Attempt   int
	ErrorCode string
}

// SetEnd adds to a deleted event that NewDeleted has just made how the job had ended.
func SetEnd(it *Item, end End) {
	it.setMore(extEndedAs, end.Status)
	it.setMore(extEndedAt, end.At.UTC().Format(time.RFC3339Nano))
	it.setMore(extAttempt, strconv.Itoa(end.Attempt))
	if end.ErrorCode != "" {
		it.setMore(extErrorOf, end.ErrorCode)
	}
}

// EndOf returns the end of the job of a deleted event; nil: the event does not have it. Its errors wrap ErrInvalid.
func EndOf(e Item) (*End, error) {
	end := End{Status: e.more[extEndedAs], ErrorCode: e.more[extErrorOf]}
	if end.Status == "" {
		return nil, nil
	}
	if !jobstate.Status(end.Status).Terminal() {
		return nil, fmt.Errorf("read %s of %s: %q is no end: %w", extEndedAs, e.ID(), end.Status, ErrInvalid)
	}
	if !utf8.ValidString(end.ErrorCode) || strings.ContainsRune(end.ErrorCode, 0) { // PostgreSQL stores neither
		return nil, fmt.Errorf("read %s of %s: %q is no text: %w", extErrorOf, e.ID(), end.ErrorCode, ErrInvalid)
	}
	var err error
	if end.At, err = time.Parse(time.RFC3339Nano, e.more[extEndedAt]); err != nil {
		return nil, fmt.Errorf("read %s of %s: %w: %w", extEndedAt, e.ID(), err, ErrInvalid)
	}
	if year := end.At.UTC().Year(); year < 0 || year > 9999 { // UTC may have another year, and JSON has four digits
		return nil, fmt.Errorf("read %s of %s: the year %d in UTC: %w", extEndedAt, e.ID(), year, ErrInvalid)
	}
	attempt, err := strconv.ParseInt(e.more[extAttempt], 10, 32)
	if err != nil || attempt < 0 {
		return nil, fmt.Errorf("read %s of %s: %q is none: %w", extAttempt, e.ID(), e.more[extAttempt], ErrInvalid)
	}
	end.Attempt = int(attempt)
	return &end, nil
}

// ExtVersion is the version of the job that a deleted event is about, in decimal: the event has no data for it.
const ExtVersion = "jobversion"

// appendDeleted appends the extensions of a deleted event as a member of an item.
func appendDeleted(b []byte, extensions map[string]string) []byte {
	text, err := Encode(extensions)
	if err != nil {
		panic(fmt.Sprintf("write the extensions of a deletion: %v", err)) // cannot happen with strings
	}
	return append(append(b, `"deleted":`...), text...)
}

// NewDeleted returns the event that a job is deleted as of this version. The event's id consists of both.
func NewDeleted(m Meta, version int64) (Item, error) {
	m.ID = DeletedID(m.JobID, version)
	e, err := New(TypeDeleted, m, nil)
	if err != nil {
		return e, err
	}
	e.setMore(ExtVersion, strconv.FormatInt(version, 10))
	return e, nil
}

// DeletedVersion returns the version of a deleted event. Its errors wrap ErrInvalid.
func DeletedVersion(e Item) (int64, error) {
	if e.Type() != TypeDeleted {
		return 0, fmt.Errorf("take event of type %q as %s: %w", e.Type(), TypeDeleted, ErrInvalid)
	}
	version, err := strconv.ParseInt(e.more[ExtVersion], 10, 64)
	if err != nil || version < 1 {
		return 0, fmt.Errorf("read version of %s %s: %q is none: %w", e.Type(), e.ID(), e.more[ExtVersion], ErrInvalid)
	}
	return version, nil
}
