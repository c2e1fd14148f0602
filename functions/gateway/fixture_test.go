package gateway_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"
	"golang.org/x/sync/errgroup"

	"github.com/jobweaver/jobweaver/functions/gateway"
	"github.com/jobweaver/jobweaver/functions/gateway/edge"
	"github.com/jobweaver/jobweaver/migrations"
	"github.com/jobweaver/jobweaver/shared/apidb"
	"github.com/jobweaver/jobweaver/shared/apidb/apidbtest"
	"github.com/jobweaver/jobweaver/shared/apidb/keystore"
	"github.com/jobweaver/jobweaver/shared/apidb/statusstore"
	"github.com/jobweaver/jobweaver/shared/apikey"
	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/jobstate"
	"github.com/jobweaver/jobweaver/shared/kafkatest"
	"github.com/jobweaver/jobweaver/shared/pgtest"
	"github.com/jobweaver/jobweaver/shared/secret"
	"github.com/jobweaver/jobweaver/shared/telemetry"
	"github.com/jobweaver/jobweaver/shared/webhook"
)

func TestMain(m *testing.M) { pgtest.Main(m, kafkatest.IgnoreSarama()) }

// fixture is a gateway on its own database, with a broker that a test can take away; openCuttable's test can take the
// database away, too.
type fixture struct {
	*client
	t      *testing.T
	ready  func(context.Context) error // of the function
	store  *apidbtest.Stores           // the stores of the other functions
	dbURL  string
	direct *pgxpool.Pool // past the gateway
	broker *broker
	stop   func() // stops Run and waits for it
	cut    func() // cuts the connection to the database; set by openCuttable only
}

// broker keeps the published events.
type broker struct {
	mu        sync.Mutex
	away      error
	published chan jobevent.Item
}

var errAway = errors.New("broker is away")

func (b *broker) set(away error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.away = away
}

func (b *broker) ask(context.Context) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.away
}

func (b *broker) publish(ctx context.Context, events []jobevent.Item) error {
	if err := b.ask(ctx); err != nil {
		return err
	}
	for _, e := range events {
		b.published <- e
	}
	return nil
}

// next returns the next published event.
func (b *broker) next(t *testing.T) jobevent.Item {
	t.Helper()
	select {
	case e := <-b.published:
		return e
	case <-time.After(10 * time.Second):
		t.Fatal("no event was published")
		return jobevent.Item{}
	}
}

func open(t *testing.T) *fixture {
	t.Helper()
	return openWith(t, func(*gateway.Config) {})
}

// openLocked opens a fixture whose gateway requires a key: see as.
func openLocked(t *testing.T) *fixture {
	t.Helper()
	return openWith(t, func(cfg *gateway.Config) { cfg.Auth = gateway.AuthOn })
}

// as returns a client with a new key of an owner; of the installation if owner is empty.
func (h *fixture) as(owner string, roles ...string) *client {
	h.t.Helper()
	return &client{t: h.t, base: h.base, key: h.key(keystore.Key{OwnerID: owner, Roles: roles}).Reveal()}
}

// key makes a key and stores it.
func (h *fixture) key(stored keystore.Key) apikey.Key {
	h.t.Helper()
	key := apikey.New()
	hash := key.Hash()
	stored.KeyID, stored.Hash, stored.Name, stored.CreatedBy = key.ID(), hash[:], "test", "test"
	if _, err := h.store.Keys.Insert(h.t.Context(), nil, stored); err != nil {
		h.t.Fatal(err)
	}
	return key
}

// openWith opens a fixture with changed settings, and additional parameters of its database's address.
func openWith(t *testing.T, change func(*gateway.Config), parameters ...string) *fixture {
	t.Helper()
	dbURL := pgtest.Database(t, migrations.API)
	return openOn(t, dbURL, strings.Join(append([]string{dbURL}, parameters...), "&"), change)
}

// openCuttable opens a fixture that reaches its database only until cut is called.
func openCuttable(t *testing.T, change func(*gateway.Config)) *fixture {
	t.Helper()
	dbURL := pgtest.Database(t, migrations.API)
	through, cut := wire(t, dbURL)
	h := openOn(t, dbURL, through, change)
	h.cut = cut
	return h
}

// openOn opens a fixture whose stores reach the database through another address.
func openOn(t *testing.T, dbURL, through string, change func(*gateway.Config)) *fixture {
	t.Helper()
	return openIn(t.Context(), t, dbURL, through, change)
}

// openLogged opens a fixture whose log is read when it has stopped.
func openLogged(t *testing.T, change func(*gateway.Config)) (h *fixture, log *strings.Builder) {
	t.Helper()
	log, dbURL := &strings.Builder{}, pgtest.Database(t, migrations.API)
	ctx := telemetry.WithLogger(t.Context(), slog.New(slog.NewTextHandler(log, nil)))
	return openIn(ctx, t, dbURL, dbURL, change), log
}

func openIn(ctx context.Context, t *testing.T, dbURL, through string, change func(*gateway.Config)) *fixture {
	t.Helper()
	h := &fixture{t: t, dbURL: dbURL, direct: pgtest.Pool(t, dbURL), broker: &broker{published: make(chan jobevent.Item, 10_000)}}
	h.store = apidbtest.Open(t, through)
	own := apidbtest.Open(t, pgtest.As(through, gateway.Name))
	cfg := gateway.Config{
		Auth: gateway.AuthOff, Queues: []string{"default", "mail"}, JobTypes: []string{"MAIL", "SLOW"}, Broker: h.broker.ask,
		Callbacks:     webhook.CallbackConfig{Secrets: secret.AllOf(globalSecret, formerSecret)},
		Limits:        edge.LimitsConfig{AuthFailureLimit: 1_000_000},
		RetryPolicies: `{"SLOW": {"maxRetryCount": 9, "timeoutMs": 1000, "retryPolicy": {"type": "fixed", "delayMs": 7}}}`,
	}
	change(&cfg)
	g := mustNew(t, cfg, own.Store).Host()
	h.ready = g.Ready
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan error, 1)
	go func() { done <- g.Run(ctx, h.broker.publish) }()
	h.stop = sync.OnceFunc(func() {
		cancel()
		g.HTTPEnded()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(h.stop)
	server := httptest.NewServer(g.HTTP)
	t.Cleanup(server.Close)
	h.client = &client{t: t, base: server.URL}
	return h
}

func mustNew(t testing.TB, cfg gateway.Config, store *apidb.Store) *gateway.Function {
	t.Helper()
	f, err := gateway.New(cfg, store)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// wire forwards to a database until it is cut.
func wire(t *testing.T, dbURL string) (through string, cut func()) {
	t.Helper()
	u, err := url.Parse(dbURL)
	if err != nil {
		t.Fatal(err)
	}
	database := u.Host
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var conns errgroup.Group
	conns.Go(func() error {
		for {
			near, err := listener.Accept()
			if err != nil {
				return nil
			}
			conns.Go(func() error { return join(ctx, near, database) })
		}
	})
	cut = sync.OnceFunc(func() {
		cancel()
		_ = listener.Close()
		_ = conns.Wait()
	})
	t.Cleanup(cut)
	u.Host = listener.Addr().String()
	return u.String(), cut
}

func join(ctx context.Context, near net.Conn, address string) error {
	defer near.Close()
	far, err := net.Dial("tcp", address)
	if err != nil {
		return err
	}
	defer far.Close()
	var both errgroup.Group
	ended, end := context.WithCancel(ctx)
	copying := func(to, from net.Conn) error {
		defer end()
		_, err := io.Copy(to, from)
		return err
	}
	both.Go(func() error { return copying(near, far) })
	both.Go(func() error { return copying(far, near) })
	<-ended.Done()
	_, _ = near.Close(), far.Close()
	return both.Wait()
}

// rows counts the jobs in the database.
func (h *fixture) rows() (n int) {
	h.t.Helper()
	h.sql("select count(*) from jobs", &n)
	return n
}

// sql bypasses the gateway: it reads one value, or only executes if value is nil.
func (h *fixture) sql(query string, value any, args ...any) {
	h.t.Helper()
	var err error
	if value == nil {
		_, err = h.direct.Exec(h.t.Context(), query, args...)
	} else {
		err = h.direct.QueryRow(h.t.Context(), query, args...).Scan(value)
	}
	if err != nil {
		h.t.Fatal(err)
	}
}

// submit posts a job and returns its id.
func (h *fixture) submit(body string) uuid.UUID {
	h.t.Helper()
	r := h.post("/api/jobs", body)
	r.want(http.StatusAccepted)
	return r.jobID()
}

// scheduler stores a status of a job, as projection does.
func (h *fixture) scheduler(id uuid.UUID, version int64, status jobstate.Status, more func(*jobevent.Status)) {
	h.t.Helper()
	s := jobevent.Status{JobID: id, Version: version, Status: string(status), UpdatedAt: time.Now(),
		History: []jobevent.Transition{{At: time.Now(), To: string(status), By: "test"}}}
	if more != nil {
		more(&s)
	}
	b, err := json.Marshal(s)
	if err != nil {
		h.t.Fatal(err)
	}
	if _, err := h.store.Statuses.ApplyStatuses(h.t.Context(), []statusstore.PublishedStatus{{Status: s, JSON: b}}); err != nil {
		h.t.Fatal(err)
	}
}

const plainJob = `{"jobType": "SIMULATION", "payload": {"steps": [{"type": "LOG", "message": "hi"}]}}`
