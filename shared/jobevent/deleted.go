package jobevent

import (
	"fmt"
	"strconv"

	"github.com/cloudevents/sdk-go/v2/event"
)

// ExtVersion is the version of the job that a deleted event is about, in decimal: it has no data that could say it.
const ExtVersion = "jobversion"

// NewDeleted says that from this version on there is nothing of a job to be seen. Its id is made from both.
func NewDeleted(m Meta, version int64) (event.Event, error) {
	m.ID = DeletedID(m.JobID, version)
	e, err := New(TypeDeleted, m, nil)
	if err != nil {
		return e, err
	}
	e.SetExtension(ExtVersion, strconv.FormatInt(version, 10))
	return e, nil
}

// DeletedVersion is the version that a deleted event carries. Its errors wrap ErrInvalid.
func DeletedVersion(e event.Event) (int64, error) {
	if e.Type() != TypeDeleted {
		return 0, fmt.Errorf("take event of type %q as %s: %w", e.Type(), TypeDeleted, ErrInvalid)
	}
	version, err := strconv.ParseInt(Extension(e, ExtVersion), 10, 64)
	if err != nil || version < 1 {
		return 0, fmt.Errorf("read version of %s %s: %q is none: %w", e.Type(), e.ID(), Extension(e, ExtVersion), ErrInvalid)
	}
	return version, nil
}
