package serve

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/jobweaver/jobweaver/shared/pgpool"
	"github.com/jobweaver/jobweaver/shared/retry"
	"github.com/jobweaver/jobweaver/shared/telemetry"
)

// place is the advisory lock of the api database that a process holds while its functions run: alone if they use the
// broker in it, or else shared with others.
const place = 0x6a77_7376

const (
	// heartbeatEvery is the time between two statements of the session that holds the lock.
	heartbeatEvery = time.Second
	// sessionPatience is how long the holder waits for their answers, and for a new connection.
	sessionPatience = 2 * time.Second
	// idleTimeout is how long the server keeps the session of a process that is frozen or cut off.
	idleTimeout = "4s"
	// askEvery is the time between two looks of a process that stands by.
	askEvery = 500 * time.Millisecond
)

// errTaken ends a process that has lost its place to another one.
var errTaken = errors.New("another process has taken over: this one was frozen, or cut off from the database")

// holder has, or waits for, the lock of an installation.
type holder struct {
	url    string
	shared bool // with others that hold it so

	name string    // of this process's sessions alone
	conn *pgx.Conn // nil: there is none
}

func newHolder(url string, shared bool) *holder {
	return &holder{url: url, shared: shared, name: fmt.Sprintf("jobweaver-serve-%08x", rand.Uint32())}
}

// await returns when this process has the lock. Meanwhile it logs once that it stands by. A process that does not
// know the api database has no lock: it uses brokers that others use, too.
func (h *holder) await(ctx context.Context) error {
	if h.url == "" {
		return nil
	}
	trouble := telemetry.Trouble{What: "ask for the lock of the installation"}
	for logged := false; ; {
		has, err := h.try(ctx)
		trouble.Note(ctx, err)
		if has {
			return nil
		}
		if err == nil && !logged {
			logged = true
			telemetry.Logger(ctx).InfoContext(ctx, "standing by: another process runs this installation")
		}
		if !retry.Pause(ctx, askEvery) {
			return ctx.Err()
		}
	}
}

// hold returns errTaken once another process has the lock. Without a connection it tries to get the lock back: after a
// restart of the server, no other process may have it.
// Why: docs/decisions/databases.md#a-process-with-its-own-broker-holds-a-lock
func (h *holder) hold(ctx context.Context) error {
	trouble := telemetry.Trouble{What: "hold the lock of the installation"}
	for retry.Pause(ctx, heartbeatEvery) {
		if h.url == "" {
			continue
		}
		err := h.heartbeat(ctx)
		for err != nil && ctx.Err() == nil {
			trouble.Note(ctx, err)
			var has bool
			if has, err = h.try(ctx); err == nil && !has {
				return errTaken
			}
			if err != nil {
				retry.Pause(ctx, askEvery)
			}
		}
		trouble.Note(ctx, err)
	}
	return nil
}

// heartbeat keeps the session from being idle. It ends a session whose server takes no writes, with an error: after a
// failover another server has the databases, and another process may have the lock there.
func (h *holder) heartbeat(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, sessionPatience)
	defer cancel()
	err := pgconn.ValidateConnectTargetSessionAttrsReadWrite(ctx, h.conn.PgConn())
	if err != nil {
		h.close()
	}
	return err
}

// try asks once for the lock. An earlier session of this process gives way: the server may not know yet that its
// connection is gone.
func (h *holder) try(ctx context.Context) (has bool, err error) {
	if err := h.connect(ctx); err != nil {
		return false, err
	}
	if err := h.heartbeat(ctx); err != nil {
		return false, err
	}
	ctx, cancel := context.WithTimeout(ctx, sessionPatience)
	defer cancel()
	lock := "pg_try_advisory_lock"
	if h.shared {
		lock = "pg_try_advisory_lock_shared"
	}
	// Of several installations in schemas of one database, each has its own lock.
	own := "$1::bigint + coalesce(hashtext(nullif(current_schema()::text, 'public'))::bigint << 32, 0)"
	if err := h.conn.QueryRow(ctx, "select "+lock+"("+own+")", place).Scan(&has); err != nil {
		return false, fmt.Errorf("ask for the lock: %w", err)
	}
	return has, nil
}

func (h *holder) connect(ctx context.Context) error {
	if h.conn != nil && !h.conn.IsClosed() {
		return nil
	}
	conn, err := pgpool.Connect(ctx, h.url, func(cfg *pgx.ConnConfig) {
		cfg.ConnectTimeout = sessionPatience
		for name, value := range map[string]string{
			"statement_timeout": sessionPatience.String(), "tcp_user_timeout": "3s",
			"tcp_keepalives_idle": "1", "tcp_keepalives_interval": "1", "tcp_keepalives_count": "3",
		} {
			cfg.RuntimeParams[name] = value
		}
		pgpool.Rename(cfg.RuntimeParams, h.name)
	})
	if err != nil {
		return fmt.Errorf("connect: %w", err)
	}
	h.conn = conn
	ctx, cancel := context.WithTimeout(ctx, sessionPatience)
	defer cancel()
	_, err = h.conn.Exec(ctx, "select set_config('idle_session_timeout', $1, false)", idleTimeout)
	if err == nil {
		_, err = h.conn.Exec(ctx, `select pg_terminate_backend(pid) from pg_stat_activity
			where application_name = current_setting('application_name') and pid <> pg_backend_pid()`)
	}
	if err != nil {
		h.close()
		return fmt.Errorf("prepare the session of the lock: %w", err)
	}
	return nil
}

// close gives the lock back.
func (h *holder) close() {
	if h.conn != nil {
		ctx, cancel := context.WithTimeout(context.Background(), sessionPatience)
		defer cancel()
		_ = h.conn.Close(ctx)
		h.conn = nil
	}
}
