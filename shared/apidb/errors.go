package apidb

import (
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/jobweaver/jobweaver/shared/pgpool"
)

// ErrNoJob says that there is no job with this id.
var ErrNoJob = errors.New("no such job")

// ErrConflict says that an idempotency key belongs to a job that asked for something else.
var ErrConflict = errors.New("idempotency key was used for another request")

// TooManyError says that an owner has as many of something as it may have.
type TooManyError struct {
	What string
	Most int
	Ends bool // there are fewer by and by
}

func (e *TooManyError) Error() string {
	return fmt.Sprintf("there are %d %s of this owner already, which is as many as there may be", e.Most, e.What)
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
