package pgpool

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"
)

// The sentences of the outages, for clients and probes.
const (
	away       = "the database cannot be reached"
	noWrites   = "the database accepts no writes"
	full       = "the disk of the database is full"
	busy       = "the database is too busy"
	crowded    = "the database has no connection left"
	starting   = "the database starts or stops"
	noPassword = "the database refuses the password"
	noUser     = "the database refuses this process"
	missing    = "the database does not exist"
	stranger   = "the certificate of the database cannot be verified"
	otherState = "sessions of the pooler lack settings of their role"
	unread     = "the password of the database cannot be read"
	byPooler   = "the address leads to a connection pooler: DATABASE_DIRECT_URL must name its server"
	withError  = "the database refuses the connection"
)

// outages has sentences by SQLSTATE, and by class of SQLSTATE.
var outages = map[string]string{
	"25006":  noWrites, // a failover is on its way, or an operator or a provider has stopped all writes
	"25P03":  busy,     // this process was frozen in its transaction, and the server ended it
	"25P04":  busy,
	"28":     noUser,
	"28P01":  noPassword,
	"3D":     missing,
	"40001":  busy,
	deadlock: busy,
	"53":     away,
	"53100":  full,
	"53300":  crowded,
	"55P03":  busy,
	"08":     away,
	"57":     away,
	"57014":  busy,
	"57P03":  starting,
	"58":     away,
}

// Outage returns a sentence about why the database is unavailable: away, full, read only, shutting down, or closed to
// this process. Neither the statement nor its data is at fault then, and a retry may work. It returns "" for any other
// error.
func Outage(err error) string {
	connecting := new(pgconn.ConnectError)
	refused := errors.As(err, &connecting)
	switch {
	case err == nil:
		return ""
	case errors.Is(err, pgconn.ErrReadOnlyConnection), isWornOut(err):
		return noWrites
	case errors.Is(err, errOtherSessions):
		return otherState
	case errors.Is(err, errNoPassword):
		return unread
	case isStranger(err):
		return stranger
	}
	if c := code(err); c != "" {
		if refused && c == "08P01" && strings.Contains(err.Error(), "startup parameter") {
			return byPooler
		}
		for _, known := range []string{c, class(err)} {
			if sentence, is := outages[known]; is {
				return sentence
			}
		}
		if refused {
			return withError
		}
		return ""
	}
	if refused || neverArrived(err) {
		return away
	}
	return ""
}

// pointOut adds what to do to the error of a pooler.
func pointOut(err error) error {
	if Outage(err) == byPooler {
		return fmt.Errorf("%s: %w", byPooler, err)
	}
	return err
}

// IsFull reports whether the server has no space left on its disk.
func IsFull(err error) bool { return Outage(err) == full }

// IsUnavailable reports whether the database is unavailable: see Outage.
func IsUnavailable(err error) bool { return Outage(err) != "" }

func neverArrived(err error) bool {
	var network net.Error
	return errors.As(err, &network) || pgconn.SafeToRetry(err) ||
		errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) ||
		errors.Is(err, pgconn.ErrConnClosed) || errors.Is(err, context.DeadlineExceeded)
}

// MayPass reports whether waiting may help a process that starts: the database is unavailable, and not because of what
// the address has.
func MayPass(err error) bool {
	return !slices.Contains([]string{"", noPassword, noUser, missing, stranger, byPooler, withError}, Outage(err))
}

// isWornOut reports whether the server takes no transaction that writes until it has been vacuumed: it has run out of
// transaction ids. The SQLSTATE is that of a row that is too large, and the message is translated.
func isWornOut(err error) bool {
	refused := new(pgconn.PgError)
	return errors.As(err, &refused) && refused.Code == "54000" &&
		slices.Contains([]string{"GetNewTransactionId", "GetNewMultiXactId"}, refused.Routine)
}
