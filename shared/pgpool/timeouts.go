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

// StatementTimeout is how long one statement may take, and one transaction. A caller that waits for an answer with a
// statement behind it must wait longer.
const StatementTimeout = 30 * time.Second

// deadPeer is how long either side keeps a TCP connection whose other side acknowledges nothing.
const deadPeer = 5 * time.Second

// A process can be frozen, or cut off, at any point of a transaction, and keeps its row locks until the server ends its
// session. No single setting covers all the points:
//
//   - Between two round trips: idle_in_transaction_session_timeout. Our transactions do nothing else between round
//     trips, so 3 s is long.
//   - While its statement waits for a lock: lock_timeout. It is not longer than the idle timeout, so that of several
//     frozen sessions that wait for one lock only the first gets it. A live session that has waited since the freeze
//     still gets the lock in time.
//   - While the server sends rows that it does not read: only TCP ends that. tcp_user_timeout does so even if the
//     kernel of the frozen process still answers the probes of its closed window (Linux 5.11 and later).
//   - In the middle of sending several statements at once: transaction_timeout, which PostgreSQL has since 17. Older
//     servers have only tcp_user_timeout and keepalives, which notice a machine that is gone and nothing else.
func limits(cfg *pgxpool.Config) {
	setMissing(cfg.ConnConfig.RuntimeParams, meaning)
	set(cfg, map[string]string{
		"application_name":                    "jobweaver",
		"role":                                "none", // not the one that ALTER ROLE … SET role names
		"statement_timeout":                   StatementTimeout.String(),
		transactionTimeout:                    StatementTimeout.String(),
		"lock_timeout":                        "3s",
		"idle_in_transaction_session_timeout": "3s",
		"tcp_user_timeout":                    deadPeer.String(),
		"tcp_keepalives_idle":                 "3",
		"tcp_keepalives_interval":             "1",
		"tcp_keepalives_count":                "3",
		"idle_session_timeout":                "0", // otherwise a listening session would end
	})
}

const transactionTimeout = "transaction_timeout"

// TransactionTimeout bounds each transaction as a whole, on PostgreSQL 17 and later.
func TransactionTimeout(d time.Duration) Option {
	return func(cfg *pgxpool.Config) { set(cfg, map[string]string{transactionTimeout: d.String()}) }
}

// afterConnect removes transaction_timeout from the start parameters, where an older server would refuse it, and sets
// it once for each connection, when the server's version is known.
func afterConnect(cfg *pgxpool.Config) func(context.Context, *pgx.Conn) error {
	timeout := cfg.ConnConfig.RuntimeParams[transactionTimeout]
	delete(cfg.ConnConfig.RuntimeParams, transactionTimeout)
	return func(ctx context.Context, conn *pgx.Conn) error {
		registerCodecs(conn.TypeMap())
		if timeout == "" || majorVersion(conn) < 17 { // a role behind a pooler has it
			return nil
		}
		set := [][]byte{[]byte(transactionTimeout), []byte(timeout)} // by PgConn, so it has no span
		return conn.PgConn().ExecParams(ctx, "select set_config($1, $2, false)", set, nil, nil, nil).Read().Err
	}
}

// majorVersion returns 0 if the server reports no version.
func majorVersion(conn *pgx.Conn) int {
	version := conn.PgConn().ParameterStatus("server_version")
	end := strings.IndexFunc(version, func(r rune) bool { return r < '0' || r > '9' })
	if end < 0 {
		end = len(version)
	}
	major, _ := strconv.Atoi(version[:end])
	return major
}

// dialer makes connections that notice when the server's machine is gone, also while an answer is awaited or a
// statement is sent.
func dialer() *net.Dialer {
	return &net.Dialer{
		KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: 3 * time.Second, Interval: time.Second, Count: 3},
		ControlContext:  setUserTimeout,
	}
}
