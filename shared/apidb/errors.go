package apidb

import (
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/jobweaver/jobweaver/shared/apierror"
	"github.com/jobweaver/jobweaver/shared/pgpool"
)

// ErrNoJob is returned for an id that is not the id of a job of the owner.
var ErrNoJob error = apierror.New(apierror.JobNotFound, "there is no such job")

// ErrConflict is returned for an idempotency key that was used for another request.
var ErrConflict error = apierror.New(apierror.IdempotencyConflict, "idempotency key was used for another request")

// TooManyError is returned to an owner that has the maximum number of something.
type TooManyError struct {
	What string
	Most int
	Ends bool // the number falls by itself, when some of them end
}

func (e *TooManyError) Error() string {
	return fmt.Sprintf("there are %d %s of this owner already, which is as many as there may be", e.Most, e.What)
}

// Unwrap returns the error for the client.
func (e *TooManyError) Unwrap() error {
	if e.Ends {
		return apierror.New(apierror.RateLimited, "%s", e)
	}
	return apierror.New(apierror.InvalidStateTransition, "%s", e)
}

// Classify wraps an error of the database with the operation, and classifies it as pgpool.Classify does. No row is
// ErrNoJob.
func Classify(doing string, err error) error {
	if err == nil {
		return nil
	}
	if errors.Is(err, pgx.ErrNoRows) {
		err = ErrNoJob
	}
	return fmt.Errorf("%s: %w", doing, pgpool.Classify(err))
}
