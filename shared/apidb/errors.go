package apidb

import (
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/jobweaver/jobweaver/shared/apierror"
	"github.com/jobweaver/jobweaver/shared/pgpool"
)

// ErrNoJob is the error for an id of which the owner has no job.
var ErrNoJob error = apierror.New(apierror.JobNotFound, "there is no such job")

// ErrConflict is the error for an idempotency key that was used for another request.
var ErrConflict error = apierror.New(apierror.IdempotencyConflict, "idempotency key was used for another request")

// TooManyError is the error for an owner that has as many of something as it may have.
type TooManyError struct {
	What string
	Most int
	Ends bool // there are fewer by and by
}

func (e *TooManyError) Error() string {
	return fmt.Sprintf("there are %d %s of this owner already, which is as many as there may be", e.Most, e.What)
}

// Unwrap returns the answer to a client.
func (e *TooManyError) Unwrap() error {
	if e.Ends {
		return apierror.New(apierror.RateLimited, "%s", e)
	}
	return apierror.New(apierror.InvalidStateTransition, "%s", e)
}

// Classify names what was done, and classifies an error of the database as pgpool.Classify does. No row is ErrNoJob.
func Classify(doing string, err error) error {
	if err == nil {
		return nil
	}
	if errors.Is(err, pgx.ErrNoRows) {
		err = ErrNoJob
	}
	return fmt.Errorf("%s: %w", doing, pgpool.Classify(err))
}
