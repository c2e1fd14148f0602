package interplay

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/jobweaver/jobweaver/infra/laptop/childproc"
	"github.com/jobweaver/jobweaver/infra/laptop/localpostgres"
	"github.com/jobweaver/jobweaver/local/dev"
	"github.com/jobweaver/jobweaver/migrations"
	"github.com/jobweaver/jobweaver/shared/apikey"
	"github.com/jobweaver/jobweaver/shared/client"
	"github.com/jobweaver/jobweaver/shared/outboxdb"
	"github.com/jobweaver/jobweaver/shared/retry"
	"github.com/jobweaver/jobweaver/shared/telemetry"
)

// An Installation runs all functions in one child process, which is this program once more, on a PostgreSQL that
// outlives it, and second instances of some functions in processes of their own.
type Installation struct {
	URL      string
	API      *client.Client
	Witness  *Witness
	Postgres *localpostgres.Server

	scheduler, api *pgxpool.Pool // their databases, to see what is on its way between them

	dir, shop string // shop is a user's database, with an outbox
	port      int
	broker    string // of the child
	admin     string // an API key of the installation
	working   sync.WaitGroup
	endWork   context.CancelFunc // of the worker of jobs with steps
	alone     sync.RWMutex       // held by programs that use what all programs share
	kept      sync.RWMutex       // held while a program reads what is left, so that retention deletes nothing meanwhile

	mu      sync.Mutex
	cmd     *exec.Cmd
	ended   <-chan struct{}
	faults  []Fault
	seconds map[string]*second // by function
}

const (
	childDir   = "INTERPLAY_DIR"
	childPort  = "INTERPLAY_PORT"
	childKafka = "INTERPLAY_KAFKA"
	childShop  = "INTERPLAY_SHOP"
)

// answerWithin is how long a request is repeated until it is answered: an installation that was killed takes seconds to
// start on a quiet machine.
const answerWithin = 2 * time.Minute

// RunChild runs the installation if this process was started for that.
func RunChild(ctx context.Context) (is bool, err error) {
	dir, ok := os.LookupEnv(childDir)
	if !ok {
		return false, nil
	}
	port, err := strconv.Atoi(os.Getenv(childPort))
	if err != nil {
		return true, fmt.Errorf("read port: %w", err)
	}
	kafka, err := strconv.Atoi(os.Getenv(childKafka))
	if err != nil {
		return true, fmt.Errorf("read port: %w", err)
	}
	logger, err := telemetry.NewLogger(os.Stderr, "warn", "text")
	if err != nil {
		return true, err
	}
	telemetry.SetDefault(logger)
	o := dev.Options{
		Dir: dir, Port: port, Kafka: "embedded", KafkaPort: kafka, Queues: []string{"default", "pull"}, JobTypes: []string{"*"},
		DatabaseURL: os.Getenv("DATABASE_URL"), Relay: []string{os.Getenv(childShop)}, Out: os.Stderr,
	}
	return true, dev.Run(ctx, o, func(ctx context.Context, _ string) error {
		<-ctx.Done()
		return nil
	})
}

// Start starts everything in a folder.
func Start(ctx context.Context, dir string, port, kafka int) (_ *Installation, err error) {
	witness, err := NewWitness()
	if err != nil {
		return nil, err
	}
	i := &Installation{
		dir: dir, port: port, URL: fmt.Sprintf("http://127.0.0.1:%d", port), Witness: witness,
		broker: fmt.Sprintf("127.0.0.1:%d", kafka), admin: apikey.New().Reveal(), seconds: map[string]*second{},
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, i.Stop())
		}
	}()
	i.API = client.New(i.URL, i.admin, client.WithTimeout(time.Minute))
	if i.Postgres, err = localpostgres.Start(ctx, localpostgres.Config{Dir: filepath.Join(dir, "postgres")}); err != nil {
		return i, err
	}
	if err := i.makeShop(ctx); err != nil {
		return i, err
	}
	if err := i.openDatabases(ctx); err != nil {
		return i, err
	}
	if err := os.MkdirAll(i.reports(), 0o700); err != nil {
		return i, err
	}
	if err := os.WriteFile(i.hooks(), []byte(hooksFile), 0o600); err != nil {
		return i, err
	}
	if err := os.WriteFile(filepath.Join(dir, "hook.secret"), []byte(hookSecret), 0o600); err != nil {
		return i, err
	}
	if err := i.launch(); err != nil {
		return i, err
	}
	if err := i.ready(ctx); err != nil {
		return i, err
	}
	for _, name := range apartNames {
		if err := i.launchApart(name); err != nil {
			return i, err
		}
	}
	working, end := context.WithCancel(context.WithoutCancel(ctx))
	i.endWork = end
	i.working.Go(func() { i.workSteps(working) })
	return i, nil
}

func (i *Installation) openDatabases(ctx context.Context) error {
	for database, pool := range map[string]**pgxpool.Pool{"jobweaver_scheduler": &i.scheduler, "jobweaver_api": &i.api} {
		at, err := migrations.WithDatabase(i.Postgres.URL(), database)
		if err != nil {
			return err
		}
		if *pool, err = pgxpool.New(ctx, at); err != nil {
			return fmt.Errorf("open %s: %w", database, err)
		}
	}
	return nil
}

func (i *Installation) hooks() string { return filepath.Join(i.dir, "hooks.yaml") }

const hookSecret = "a secret of thirty-two characters"

// A hook takes its whole request out of the body, so that each program can send its own. Each of the two owners of a
// program sends to a hook of its own.
const hookOf = `  - name: %[1]s
    owner: %[1]s
    signature: header
    header: X-Interplay
    secretFiles: [hook.secret]
    job:
      jobType: {$path: $.jobType}
      queue: {$path: $.queue}
      maxRetryCount: 1
      retryPolicy: {type: fixed, delayMs: 100}
      tags: [{$path: $.tag}]
      payload: {$path: $.payload}
`

var hooksFile = "hooks:\n" + fmt.Sprintf(hookOf, "hooked-a") + fmt.Sprintf(hookOf, "hooked-b")

func (i *Installation) makeShop(ctx context.Context) error {
	conn, err := pgx.Connect(ctx, i.Postgres.URL())
	if err != nil {
		return fmt.Errorf("connect: %w", err)
	}
	defer func() { _ = conn.Close(ctx) }()
	if _, err := conn.Exec(ctx, "create database shop"); err != nil {
		return fmt.Errorf("make the user's database: %w", err)
	}
	at, err := url.Parse(i.Postgres.URL())
	if err != nil {
		return errors.New("the server's address is not a URL")
	}
	at.Path = "/shop"
	i.shop = at.String()
	return outboxdb.Install(ctx, i.shop, outboxdb.Roles{})
}

func (i *Installation) launch() error {
	log, err := os.OpenFile(i.Log(), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return fmt.Errorf("open log: %w", err)
	}
	defer func() { _ = log.Close() }() // the child has its own
	self, err := os.Executable()
	if err != nil {
		return err
	}
	i.cmd = exec.Command(self)
	i.cmd.Dir = i.dir
	_, kafka, _ := strings.Cut(i.broker, ":")
	i.cmd.Env = append(i.settings(),
		childDir+"="+filepath.Join(i.dir, "installation"), fmt.Sprintf("%s=%d", childPort, i.port), childKafka+"="+kafka,
		childShop+"="+i.shop, "DATABASE_URL="+i.Postgres.URL(), "HOOKS_FILE="+i.hooks(), "AUTH_FAILURE_LIMIT=1000000",
		"AUTH=on", "BOOTSTRAP_API_KEY="+i.admin, "GATEWAY_API_KEY="+i.admin,
		"OPERATION_LIMIT=1000", `RETRY_POLICIES={"*": {"retryPolicy": {"type": "fixed", "delayMs": 100}, "timeoutMs": 20000}}`)
	i.cmd.Stdout, i.cmd.Stderr = log, log
	i.ended, err = childproc.Start(i.cmd, syscall.SIGKILL)
	return err
}

// settings are those of all processes.
func (i *Installation) settings() []string {
	return []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + os.Getenv("HOME"), "TMPDIR=" + os.TempDir(), "POOL_SIZE=48",
		"SMTP_HOST=127.0.0.1", fmt.Sprintf("SMTP_PORT=%d", i.Witness.MailPort), "SMTP_TLS=none", "SMTP_FROM=" + mailFrom,
		"REPORT_BUCKET=file://" + i.reports(),
	}
}

// Log is the path of the installation's log.
func (i *Installation) Log() string { return filepath.Join(i.dir, "installation.log") }

func (i *Installation) ready(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, answerWithin)
	defer cancel()
	for {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, i.URL+"/health/readiness", nil)
		if err != nil {
			return err
		}
		res, err := http.DefaultClient.Do(req)
		if err == nil {
			_ = res.Body.Close()
			if res.StatusCode == http.StatusOK {
				return nil
			}
		}
		select {
		case <-i.ended:
			return fmt.Errorf("the installation ended: %s, see %s", i.cmd.ProcessState, i.Log())
		default:
		}
		if !retry.Pause(ctx, 100*time.Millisecond) {
			return fmt.Errorf("wait for the installation: %w", ctx.Err())
		}
	}
}

// Disturb kills, stops or drains for some time. Only one fault is under way at a time. The name is that of a function,
// for the kinds that disturb one.
func (i *Installation) Disturb(ctx context.Context, kind, name string, d time.Duration) error {
	if kind == "retain" {
		i.kept.Lock() // before mu, which those that read take, too
		defer i.kept.Unlock()
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	f := Fault{Kind: kind, From: time.Now()}
	var err error
	switch kind {
	case "kill":
		err = i.cmd.Process.Kill()
		<-i.ended
		if err == nil {
			err = errors.Join(i.launch(), i.ready(ctx))
		}
	case "stop":
		if err = i.cmd.Process.Signal(syscall.SIGSTOP); err == nil {
			retry.Pause(ctx, d)
			err = i.cmd.Process.Signal(syscall.SIGCONT)
		}
	case "retain":
		f.Retired, err = i.retain(ctx, d)
	case "kill one", "stop one":
		err = i.disturbApart(ctx, kind, name, d)
	default:
		err = i.drain(ctx, d)
	}
	f.To = time.Now()
	i.faults = append(i.faults, f)
	return err
}

// drain drains every worker for some time.
func (i *Installation) drain(ctx context.Context, d time.Duration) error {
	var all struct {
		Workers []struct {
			WorkerID string
			Live     bool
		}
	}
	if _, err := i.API.Do(ctx, http.MethodGet, "/api/workers", "", nil, &all); err != nil {
		return fmt.Errorf("list workers: %w", err)
	}
	for _, method := range []string{http.MethodPut, http.MethodDelete} {
		for _, w := range all.Workers {
			if w.Live {
				_, err := i.API.Do(ctx, method, "/api/workers/"+url.PathEscape(w.WorkerID)+"/drain", "", nil, nil)
				if err != nil && !errors.Is(err, client.ErrNotFound) {
					return fmt.Errorf("drain %s: %w", w.WorkerID, err)
				}
			}
		}
		retry.Pause(ctx, d)
		d = 0
	}
	return nil
}

// Since returns the faults that were not over at an instant.
func (i *Installation) Since(at time.Time) (list []Fault) {
	i.mu.Lock()
	defer i.mu.Unlock()
	for _, f := range i.faults {
		if f.To.After(at) {
			list = append(list, f)
		}
	}
	return list
}

// Stop ends everything.
func (i *Installation) Stop() (err error) {
	if i.endWork != nil {
		i.endWork()
		i.working.Wait()
	}
	err = i.endApart()
	if i.cmd != nil && i.cmd.Process != nil {
		if killed := i.cmd.Process.Kill(); !errors.Is(killed, os.ErrProcessDone) {
			err = errors.Join(err, killed)
		}
		<-i.ended
	}
	i.Witness.CloseClientConnections()
	i.Witness.Close()
	err = errors.Join(err, i.Witness.smtp.Close())
	for _, pool := range []*pgxpool.Pool{i.scheduler, i.api} {
		if pool != nil {
			pool.Close()
		}
	}
	if i.Postgres != nil {
		err = errors.Join(err, i.Postgres.Stop())
	}
	return err
}
