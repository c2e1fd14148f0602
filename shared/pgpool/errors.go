package pgpool

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/jobweaver/jobweaver/shared/jobevent"
)

// Classify wraps jobevent.ErrInvalid around an error that the data causes, which no retry can help: SQLSTATE
// 22 (value), 23 (constraint), 54 (too large), or a value that does not fit its column's type. It returns any
// other error, and nil, unchanged.
func Classify(err error) error {
	if err == nil || errors.Is(err, jobevent.ErrInvalid) {
		return err
	}
	if slices.Contains([]string{"22", "23", "54"}, class(err)) && !isWornOut(err) || neverSent(err) {
		return fmt.Errorf("%w: %w", jobevent.ErrInvalid, err)
	}
	return err
}

// neverSent reports whether pgx could not encode an argument. pgx has no error type for that.
func neverSent(err error) bool {
	return code(err) == "" && strings.Contains(err.Error(), "failed to encode args[")
}

// TimedOut reports whether a statement or its transaction took longer than the server allows.
func TimedOut(err error) bool { return slices.Contains([]string{"57014", "25P04"}, code(err)) }

// NotLocked reports whether a statement did not get a lock: it waited longer than its session allows, or would have
// waited for a session that waits for its own (deadlock).
func NotLocked(err error) bool { return slices.Contains([]string{"55P03", deadlock}, code(err)) }

// IsTaken reports whether a row with the same key exists.
func IsTaken(err error) bool { return code(err) == "23505" }

// isConflict reports whether a transaction that begins anew may succeed at once.
func isConflict(err error) bool { return slices.Contains([]string{"40001", deadlock}, code(err)) }

const deadlock = "40P01"

// code returns the error's SQLSTATE, or "" if the error is not the server's.
func code(err error) string {
	if pgErr := new(pgconn.PgError); errors.As(err, &pgErr) {
		return pgErr.Code
	}
	return ""
}

func class(err error) string {
	if c := code(err); len(c) == 5 {
		return c[:2]
	}
	return ""
}
