package jobspec

import (
	"bytes"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/jobweaver/jobweaver/shared/apierror"
)

// The values of onDependencyFailure.
const (
	OnDependencyFailureCancel = "cancel"
	OnDependencyFailureRun    = "run"
)

func parseOnDependencyFailure(s string) (runAnyway bool, wrong string) {
	if s != OnDependencyFailureCancel && s != OnDependencyFailureRun {
		return false, fmt.Sprintf("must be %s or %s", OnDependencyFailureCancel, OnDependencyFailureRun)
	}
	return s == OnDependencyFailureRun, ""
}

// idList collects ids, each once.
type idList struct {
	ids  []uuid.UUID
	seen map[uuid.UUID]struct{}
}

// add returns what is wrong with an id, or "".
func (l *idList) add(text string) string {
	id, err := uuid.Parse(text)
	if err != nil || id.String() != text { // uuid.Parse takes other forms too
		return "must be the id of a job, as 01936f3e-5f3e-7cc0-8000-0123456789ab"
	}
	if _, twice := l.seen[id]; twice {
		return "is there twice"
	}
	if l.seen == nil {
		l.seen = map[uuid.UUID]struct{}{}
	}
	l.seen[id] = struct{}{}
	l.ids = append(l.ids, id)
	return ""
}

func compareIDs(a, b uuid.UUID) int { return bytes.Compare(a[:], b[:]) }

const late = "must be later than now, and than the time from which the job may run"

// IsLate reports whether the only problem that Validate found is that the request has expired. Such a request can
// still repeat an earlier one.
func IsLate(err error) bool {
	var wrong *apierror.Error
	return errors.As(err, &wrong) && len(wrong.Details) == 1 &&
		wrong.Details[0] == apierror.Detail{Path: "expiresAt", Message: late}
}

// checkExpiry is of a job that may run from dueAt on.
func checkExpiry(expiresAt, dueAt time.Time) string {
	switch left := expiresAt.Sub(dueAt); {
	case left <= 0:
		return late
	case left > MaxAhead:
		return fmt.Sprintf("must be at most %d days after the job may run", MaxAhead/(24*time.Hour))
	}
	return ""
}
