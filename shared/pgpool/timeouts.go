package pgpool

import (
	"context"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// StatementTimeout is how long one statement may take, and one transaction. Whoever waits for an answer that a
// statement stands behind waits longer.
const StatementTimeout = 30 * time.Second

// deadPeer is how long either side keeps a TCP connection whose other side acknowledges nothing.
const deadPeer = 5 * time.Second

// A process can be frozen, or cut off, at any point of a transaction, and keeps its row locks for as long as the server
// lets it. No single setting covers all the points:
//
//   - Between two round trips: idle_in_transaction_session_timeout. Our transactions do nothing else meanwhile, so 3 s
//     is long.
//   - While its statement waits for a lock: lock_timeout. It is not longer than the idle timeout, so that of several
//     frozen sessions that wait for one lock only the first gets it; who waits since the freeze still gets it in time.
//   - While the server sends rows that it does not read: only TCP ends that, and tcp_user_timeout does even where the
//     kernel of the frozen process still answers the probes of its closed window (Linux 5.11 and later).
//   - In the middle of sending several statements at once: transaction_timeout, which PostgreSQL has since 17. Before,
//     only tcp_user_timeout and keepalives do, and those only for a machine that is gone.
func limits(cfg *pgxpool.Config) {
	set(cfg, map[string]string{
		"application_name":                    "jobweaver",
		"timezone":                            "UTC",
		"statement_timeout":                   StatementTimeout.String(),
		transactionTimeout:                    StatementTimeout.String(),
		"lock_timeout":                        "3s",
		"idle_in_transaction_session_timeout": "3s",
		"tcp_user_timeout":                    deadPeer.String(),
		"tcp_keepalives_idle":                 "3",
		"tcp_keepalives_interval":             "1",
		"tcp_keepalives_count":                "3",
	})
}

const transactionTimeout = "transaction_timeout"

// TransactionTimeout bounds each transaction as a whole, where the server is PostgreSQL 17 or later.
func TransactionTimeout(d time.Duration) Option {
	return func(cfg *pgxpool.Config) { set(cfg, map[string]string{transactionTimeout: d.String()}) }
}

// afterConnect takes transaction_timeout out of the parameters of the start, where an older server would refuse it, and
// sets it once a connection, when the server has said its version.
func afterConnect(cfg *pgxpool.Config) func(context.Context, *pgx.Conn) error {
	timeout := cfg.ConnConfig.RuntimeParams[transactionTimeout]
	delete(cfg.ConnConfig.RuntimeParams, transactionTimeout)
	return func(ctx context.Context, conn *pgx.Conn) error {
		registerCodecs(conn.TypeMap())
		if majorVersion(conn) < 17 {
			return nil
		}
		set := [][]byte{[]byte(transactionTimeout), []byte(timeout)} // without a span: it is nobody's statement
		return conn.PgConn().ExecParams(ctx, "select set_config($1, $2, false)", set, nil, nil, nil).Read().Err
	}
}

// majorVersion is 0 where the server names none.
func majorVersion(conn *pgx.Conn) int {
	version := conn.PgConn().ParameterStatus("server_version")
	end := strings.IndexFunc(version, func(r rune) bool { return r < '0' || r > '9' })
	if end < 0 {
		end = len(version)
	}
	major, _ := strconv.Atoi(version[:end])
	return major
}

// dialer notices a server whose machine has gone while an answer is waited for, or a statement is sent.
func dialer() *net.Dialer {
	return &net.Dialer{
		KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: 3 * time.Second, Interval: time.Second, Count: 3},
		ControlContext:  setUserTimeout,
	}
}
