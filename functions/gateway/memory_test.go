package gateway_test

import (
	"bufio"
	"bytes"
	"context"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/uuid"
	"golang.org/x/sync/errgroup"

	"github.com/jobweaver/jobweaver/functions/gateway"
	"github.com/jobweaver/jobweaver/infra/laptop/childproc"
	"github.com/jobweaver/jobweaver/infra/laptop/freeport"
	"github.com/jobweaver/jobweaver/migrations"
	"github.com/jobweaver/jobweaver/shared/apidb/apidbtest"
	"github.com/jobweaver/jobweaver/shared/kafkatest"
	"github.com/jobweaver/jobweaver/shared/pgtest"
)

const (
	memoryLimit = 200 // MiB; the container of a gateway has 256
	memoryGoal  = "176MiB"
)

var memory = flag.Bool("gateway.memory", false, "attack a gateway's memory; nothing else may run meanwhile")

// TestAGatewayStaysWithinItsMemory attacks the real program, with the settings of knative/, in ways that once made it
// allocate several times the memory of its container, and reads the highest resident size that the kernel has recorded.
func TestAGatewayStaysWithinItsMemory(t *testing.T) {
	t.Parallel()
	if !*memory {
		t.Skip("-gateway.memory=false: the collector of a process that gets no CPU comes too late")
	}
	p := startGateway(t)
	for _, attack := range []struct {
		name string
		try  func()
	}{
		{"unauthenticated senders announce large callbacks", p.announceBodies},
		{"unauthenticated senders send large callbacks", p.sendCallbacks},
		{"lists of large jobs", p.listLargeJobs},
		{"jobs with long logs", p.readLongLogs},
		{"lists of large schedules", p.listLargeSchedules},
		{"large batches at once", p.submitBatches},
		{"large flows", p.readLargeFlows},
		{"claims of large attempts", p.claimLargeAttempts},
		{"fan-outs with large payloads", p.expandLargeFanOuts},
		{"a fan-out with large outputs", p.endLargeFanOut},
		{"batches of summaries", p.submitManySummaries},
		{"large things that no client reads", p.readManyLargeThings},
		{"held answers", p.holdAnswers},
	} {
		t.Run(attack.name, func(t *testing.T) { //nolint:paralleltest // they attack one process
			p.begin(t)
			attack.try()
			peak := max(p.peak(), p.most)
			t.Logf("%d MiB at most", peak)
			if peak > memoryLimit {
				t.Errorf("its memory grew to %d MiB", peak)
			}
		})
	}
}

// gatewayProcess is the program as it runs in its container.
type gatewayProcess struct {
	*fixture
	address string
	pid     int
	owners  []*client
	most    int // MiB that an attack has taken, with what the kernel holds
}

// begin forgets the memory that the attacks before have taken.
func (p *gatewayProcess) begin(t *testing.T) {
	t.Helper()
	if err := os.WriteFile(fmt.Sprintf("/proc/%d/clear_refs", p.pid), []byte("5"), 0); err != nil {
		t.Fatal(err)
	}
	p.most = 0
}

func startGateway(t *testing.T) *gatewayProcess {
	t.Helper()
	binary := filepath.Join(t.TempDir(), "gateway")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", binary, "./cmd").CombinedOutput(); err != nil {
		t.Fatalf("build gateway: %v\n%s", err, out)
	}
	h := &fixture{t: t, dbURL: pgtest.Database(t, migrations.API)}
	h.direct = pgtest.Pool(t, h.dbURL)
	store := apidbtest.Open(t, h.dbURL)
	h.store = store
	port := freeport.For(t)
	p := &gatewayProcess{fixture: h, address: "127.0.0.1:" + port}
	cmd := exec.Command(binary)
	cmd.Env = []string{
		"HOST=127.0.0.1", "PORT=" + port, "DATABASE_URL=" + pgtest.As(h.dbURL, gateway.Name) + "&pool_max_conns=4",
		"KAFKA_BROKERS=" + strings.Join(kafkatest.Brokers(t), ","), "CALLBACK_SECRETS=" + globalSecret, "LOG_LEVEL=error",
		"PULL_URL=" + newLargePull(t).URL, "JOB_TYPES=*", "GOMEMLIMIT=" + memoryGoal, "TMPDIR=" + os.TempDir(), "PATH=" + os.Getenv("PATH"),
	}
	cmd.Stdout, cmd.Stderr = os.Stderr, os.Stderr
	ended, err := childproc.Start(cmd, syscall.SIGKILL)
	if err != nil {
		t.Fatal(err)
	}
	p.pid = cmd.Process.Pid
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		<-ended
	})
	h.client = &client{t: t, base: "http://" + p.address}
	for _, owner := range []string{"acme", "globex"} {
		p.owners = append(p.owners, h.as(owner, "admin"))
	}
	p.awaitReady()
	return p
}

func (p *gatewayProcess) awaitReady() {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.t.Context(), 30*time.Second)
	defer cancel()
	for {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, p.base+"/health/readiness", http.NoBody)
		if err != nil {
			p.t.Fatal(err)
		}
		if res, err := http.DefaultClient.Do(req); err == nil {
			_ = res.Body.Close()
			if res.StatusCode == http.StatusOK {
				return
			}
		}
		select {
		case <-ctx.Done():
			p.t.Fatal("the gateway does not become ready")
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// peak returns the highest resident size so far in MiB, without the mapped pages of the program's own file: the kernel
// reclaims those when the container needs memory. They count as shared memory if the file is in a tmpfs, as in CI.
func (p *gatewayProcess) peak() int { return p.memory("VmHWM") }

// resident is the same for now.
func (p *gatewayProcess) resident() int { return p.memory("VmRSS") }

func (p *gatewayProcess) memory(field string) int {
	p.t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.pid))
	if err != nil {
		p.t.Fatalf("the gateway has ended: %v", err)
	}
	var most, file, shared int
	for line := range strings.Lines(string(status)) {
		_, _ = fmt.Sscanf(line, field+": %d kB", &most)
		_, _ = fmt.Sscanf(line, "RssFile: %d kB", &file)
		_, _ = fmt.Sscanf(line, "RssShmem: %d kB", &shared)
	}
	if most == 0 || file == 0 {
		p.t.Fatalf("there is no %s or RssFile:\n%s", field, status)
	}
	return (most - file - shared) >> 10
}

// announceBodies opens connections that announce the largest callback and never send it.
func (p *gatewayProcess) announceBodies() {
	const head = "POST /api/jobs/callback HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n" +
		"X-Callback-Secret: x\r\nContent-Length: 524288\r\n\r\n"
	for range 1500 {
		conn, err := new(net.Dialer).DialContext(p.t.Context(), "tcp", p.address)
		if err != nil {
			p.t.Fatal(err)
		}
		defer conn.Close()
		if _, err := io.WriteString(conn, head); err != nil {
			p.t.Fatal(err)
		}
	}
	p.owners[0].get("/api/me").want(http.StatusOK) // by now it has read the headers of the requests before
}

// sendCallbacks sends large callbacks without their last byte.
func (p *gatewayProcess) sendCallbacks() {
	const size = 512 << 10
	head := fmt.Sprintf("POST /api/jobs/callback HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"+
		"X-Callback-Secret: x\r\nContent-Length: %d\r\n\r\n", size)
	body := bytes.Repeat([]byte{' '}, size-1)
	var all errgroup.Group
	for range 600 {
		conn, err := new(net.Dialer).DialContext(p.t.Context(), "tcp", p.address)
		if err != nil {
			p.t.Fatal(err)
		}
		defer conn.Close()
		all.Go(func() error {
			_ = conn.SetWriteDeadline(time.Now().Add(3 * time.Second)) // bytes that are not read need not be sent
			_, _ = io.WriteString(conn, head)
			_, _ = conn.Write(body)
			return nil
		})
	}
	_ = all.Wait()
	p.owners[0].get("/api/me").want(http.StatusOK)
}

// atOnce sends several requests of each owner at once, and counts the 200s.
func (p *gatewayProcess) atOnce(times int, do func(*client) (*http.Request, error)) {
	p.t.Helper()
	var mu sync.Mutex
	answers := map[int]int{}
	var all errgroup.Group
	for _, owner := range p.owners {
		for range times {
			all.Go(func() error {
				req, err := do(owner)
				if err != nil {
					return err
				}
				req.Header.Set("Authorization", "Bearer "+owner.key)
				res, err := http.DefaultClient.Do(req)
				if err != nil {
					return err
				}
				_, err = io.Copy(io.Discard, bufio.NewReader(res.Body))
				_ = res.Body.Close()
				mu.Lock()
				answers[res.StatusCode]++
				mu.Unlock()
				return err
			})
		}
	}
	err := all.Wait()
	p.t.Logf("answers: %v, %v", answers, err)
	if answers[http.StatusOK] == 0 {
		p.t.Error("nothing was answered")
	}
}

func (p *gatewayProcess) gets(times int, path string) {
	p.t.Helper()
	p.atOnce(times, func(c *client) (*http.Request, error) {
		return http.NewRequestWithContext(p.t.Context(), http.MethodGet, c.base+path, http.NoBody)
	})
}

// listLargeJobs requests pages of jobs with large outputs.
func (p *gatewayProcess) listLargeJobs() {
	p.sql(`with one as (
			select n, owner, gen_random_uuid() as id from generate_series(1, 200) as n, unnest(array['acme', 'globex']) as owner
		)
		insert into jobs (job_id, trace_id, owner_id, job_type, queue, payload, spec, status,
			version, attempt, snapshot)
		select id, id, owner, 'MAIL', 'default', '1', '{"priority":0,"maxRetryCount":0,"timeoutMs":1000}', 'COMPLETED', 2, 1,
			format('{"jobId": "%s", "version": 2, "status": "COMPLETED", "attempt": 1, "output": "%s"}', id, repeat('x', 250000))
		from one`, nil)
	for range 2 {
		p.gets(5, "/api/jobs?limit=200")
	}
}

// readLongLogs requests jobs with many attempts, each with the longest log that an attempt may have.
func (p *gatewayProcess) readLongLogs() {
	id := uuid.Must(uuid.NewV7())
	p.sql(`insert into jobs (job_id, trace_id, owner_id, job_type, queue, payload, spec, status)
		values ($1, $1, 'acme', 'MAIL', 'default', '1', '{"priority":0,"maxRetryCount":0,"timeoutMs":1000}', 'PENDING')`, nil, id)
	p.sql(`insert into attempt_logs (job_id, attempt, first_line, lines)
		select $1, attempt, 0, (select json_agg(json_build_object('at', '2026-11-22T08:00:00Z', 'level', 'info', 'text', repeat('x', 1000)))
			from generate_series(1, 64))
		from generate_series(1, 400) as attempt`, nil, id)
	for _, path := range []string{"/api/jobs/" + id.String(), "/api/jobs/" + id.String() + "/logs"} {
		p.gets(8, path)
	}
}

// listLargeSchedules requests pages of schedules with large jobs.
func (p *gatewayProcess) listLargeSchedules() {
	p.sql(`insert into schedules (schedule_id, owner_id, name, cron, time_zone, anchor_at, job, overlap, missed, paused)
		select gen_random_uuid(), owner, 's' || n, '@daily', 'UTC', now(),
			format('{"jobType": "MAIL", "ownerId": "%s", "payload": "%s"}', owner, repeat('x', 500000))::json, 'allow', 'skip', true
		from generate_series(1, 200) as n, unnest(array['acme', 'globex']) as owner`, nil)
	p.gets(5, "/api/schedules?limit=200")
}

// submitBatches sends many batches of the largest size at once.
func (p *gatewayProcess) submitBatches() {
	const jobs = 32
	job := `{"jobType":"SIMULATION","payload":{"steps":[{"type":"LOG","message":"` + strings.Repeat("x", 1000) + `"}`
	step := `,{"type":"LOG","message":"` + strings.Repeat("x", 1000) + `"}`
	job += strings.Repeat(step, 500) + `]}}`
	batch := []byte(`{"jobs":[` + job + strings.Repeat(","+job, jobs-1) + `]}`)
	if len(batch) > 16<<20 {
		p.t.Fatalf("the batch has %d bytes", len(batch))
	}
	p.atOnce(12, func(c *client) (*http.Request, error) {
		req, err := http.NewRequestWithContext(p.t.Context(), http.MethodPost, c.base+"/api/jobs/batch", bytes.NewReader(batch))
		if err != nil {
			return nil, err
		}
		req.Header.Set("Content-Type", "application/json")
		return req, nil
	})
}
