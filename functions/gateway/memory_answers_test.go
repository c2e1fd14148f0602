package gateway_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"golang.org/x/sync/errgroup"

	"github.com/jobweaver/jobweaver/shared/pullwire"
	"github.com/jobweaver/jobweaver/shared/testwait"
)

// unread sends requests of each owner, whose answers no client reads, and waits until the gateway takes no more memory.
func (p *gatewayProcess) unread(times int, method string, path func(*client) string, body string) {
	p.t.Helper()
	conns := make([]net.Conn, times*len(p.owners))
	var all errgroup.Group
	all.SetLimit(50)
	for i := range conns {
		all.Go(func() (err error) {
			owner := p.owners[i%len(p.owners)]
			conns[i], err = p.send(owner, method, path(owner), body)
			return err
		})
	}
	err := all.Wait()
	most, since := 0, time.Now()
	testwait.Until(p.t, "no more memory", func() bool {
		if now := p.resident() + p.unsent(); now > most {
			most, since = now, time.Now()
		}
		return time.Since(since) > 3*time.Second
	})
	p.most = max(p.most, most)
	answers, head := map[string]int{}, make([]byte, len("HTTP/1.1 200"))
	for _, conn := range conns {
		_ = conn.SetReadDeadline(time.Now().Add(5 * time.Millisecond))
		n, _ := io.ReadFull(conn, head)
		answers[string(head[:n])]++
		_ = conn.Close()
	}
	p.t.Logf("%s %s: %d MiB, of which the kernel holds some; answers %v, %v", method, path(p.owners[0]), most, answers, err)
}

// send sends a request over a connection that takes only a few bytes of the answer.
func (p *gatewayProcess) send(owner *client, method, path, body string) (net.Conn, error) {
	conn, err := new(net.Dialer).DialContext(p.t.Context(), "tcp", p.address)
	if err != nil {
		return nil, err
	}
	p.t.Cleanup(func() { _ = conn.Close() })
	_ = conn.(*net.TCPConn).SetReadBuffer(4 << 10)
	_ = conn.SetWriteDeadline(time.Now().Add(5 * time.Second)) // a body that is refused is not read to its end
	_, _ = fmt.Fprintf(conn, "%s %s HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\n"+
		"Content-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", method, path, owner.key, len(body), body)
	return conn, nil
}

// unsent returns how much of its answers the kernel holds, in MiB. That is memory of the container, too.
func (p *gatewayProcess) unsent() int {
	p.t.Helper()
	table, err := os.ReadFile(fmt.Sprintf("/proc/%d/net/tcp", p.pid))
	if err != nil {
		p.t.Fatal(err)
	}
	_, port, _ := net.SplitHostPort(p.address)
	var number, bytes int64
	_, _ = fmt.Sscan(port, &number)
	for line := range strings.Lines(string(table)) {
		if fields := strings.Fields(line); len(fields) > 4 && strings.HasSuffix(fields[1], fmt.Sprintf(":%04X", number)) {
			var queued int64
			_, _ = fmt.Sscanf(fields[4], "%x:", &queued)
			bytes += queued
		}
	}
	return int(bytes >> 20)
}

func always(path string) func(*client) string { return func(*client) string { return path } }

// readLargeFlows reads, awaits and cancels flows with as many jobs and edges as there may be.
func (p *gatewayProcess) readLargeFlows() {
	flow := bytes.NewBufferString(`{"jobs": {`)
	for i := range 9_900 {
		var after []string
		for k := max(0, i-10); k < i; k++ {
			after = append(after, fmt.Sprintf(`"j%d"`, k))
		}
		fmt.Fprintf(flow, `"j%d": {"jobType": "MAIL", "payload": {}, "delayMs": 86400000, "after": [%s]},`, i, strings.Join(after, ","))
	}
	flow.Truncate(flow.Len() - 1)
	flow.WriteString("}}")
	flows := map[*client]string{}
	for _, owner := range p.owners {
		r := owner.post("/api/flows", flow.String())
		r.want(http.StatusCreated)
		flows[owner] = r.header.Get("Location")
	}
	of := func(more string) func(*client) string { return func(c *client) string { return flows[c] + more } }
	p.unread(30, http.MethodGet, of(""), "")
	p.unread(100, http.MethodGet, of("?wait=5s"), "")
	p.unread(30, http.MethodPost, of("/cancel"), "")
	for _, owner := range p.owners { // nothing stays taken, and a single request has room
		testwait.Until(p.t, "a flow", func() bool { return owner.get(flows[owner]).status == http.StatusOK })
		owner.post(flows[owner]+"/cancel", "").want(http.StatusAccepted)
	}
}

// newLargePull makes an instance of pull. It hands out 4 MiB of attempts to each claim of the type BIG, and none to others.
func newLargePull(t *testing.T) *httptest.Server {
	t.Helper()
	var all pullwire.Attempts
	for range 8 {
		var a pullwire.Attempt
		a.JobID, a.Attempt, a.Token, a.JobType, a.Queue = uuid.Must(uuid.NewV7()).String(), 1, "i.t.x", "BIG", "pull"
		a.Payload = json.RawMessage(`"` + strings.Repeat("x", 510_000) + `"`)
		all.Attempts = append(all.Attempts, a)
	}
	var answer bytes.Buffer
	if err := pullwire.Write(&answer, all); err != nil {
		t.Fatal(err)
	}
	closing := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if asked, _ := io.ReadAll(r.Body); bytes.Contains(asked, []byte(`"BIG"`)) {
			_, _ = w.Write(answer.Bytes())
			return
		}
		select {
		case <-r.Context().Done():
		case <-closing:
		}
	}))
	t.Cleanup(server.Close)
	t.Cleanup(func() { close(closing) })
	return server
}

// claimLargeAttempts claims attempts whose payloads fill the answers.
func (p *gatewayProcess) claimLargeAttempts() {
	p.unread(48, http.MethodPost, always("/api/workers/claim"), `{"worker": "w", "types": ["BIG"], "slots": 8, "wait": "5s"}`)
}

// holdAnswers has as many claims, waits and streams held as the gateway holds.
func (p *gatewayProcess) holdAnswers() {
	p.unread(2_000, http.MethodPost, always("/api/workers/claim"), `{"worker": "w", "types": ["NONE"], "wait": "60s"}`)
	batch := p.owners[0].post("/api/batches", `{"jobs": []}`)
	batch.want(http.StatusCreated)
	p.owners = p.owners[:1]
	p.unread(2_000, http.MethodGet, always(batch.header.Get("Location")+"?wait=50s"), "")
}

// expandLargeFanOuts has fan-outs make jobs that have together as many bytes as they may have.
func (p *gatewayProcess) expandLargeFanOuts() {
	var all []uuid.UUID
	for range 4 {
		jobs := p.fanOut(`{"x": "` + strings.Repeat("x", 500_000) + `", "i": {"$item": "value"}}`)
		p.sql(`update jobs set status = 'COMPLETED', version = 2, attempt = 1, snapshot =
			format('{"jobId": "%s", "version": 2, "status": "COMPLETED", "attempt": 1, "output": {"items": [%s]}}', job_id, $2::text)
			where job_id = $1`, nil, jobs["list"], strings.Repeat("1,", 32)+"1")
		all = append(all, jobs["each"])
	}
	for _, each := range all {
		testwait.Until(p.t, "the jobs of the elements", func() bool {
			var jobs int
			p.sql(`select coalesce(elements, 0) from jobs where job_id = $1`, &jobs, each)
			return jobs == 33
		})
	}
}

func (p *gatewayProcess) fanOut(payload string) map[string]uuid.UUID {
	p.t.Helper()
	var flow *response
	testwait.Until(p.t, "room for the flow beside the answers of the attack before", func() bool {
		flow = p.owners[0].post("/api/flows", fanOut(payload, ""))
		return flow.status != http.StatusTooManyRequests
	})
	flow.want(http.StatusCreated)
	var made struct{ Jobs map[string]uuid.UUID }
	flow.into(&made)
	return made.Jobs
}

// endLargeFanOut ends a fan-out whose jobs have large outputs.
func (p *gatewayProcess) endLargeFanOut() {
	each := p.fanOut(`{"$item": "value"}`)["each"]
	p.sql(`update jobs set elements = 520 where job_id = $1`, nil, each)
	p.sql(`insert into jobs (job_id, trace_id, owner_id, job_type, queue, payload, spec, status,
			version, attempt, snapshot, fan_out_id, element, batch_id)
		select id, id, 'acme', 'MAIL', 'default', '1', '{"priority":0,"maxRetryCount":0,"timeoutMs":1000}', 'COMPLETED', 2, 1,
			format('{"jobId": "%s", "version": 2, "status": "COMPLETED", "attempt": 1, "output": "%s"}', id, repeat('x', 250000)),
			$1, n, (select batch_id from jobs where job_id = $1)
		from (select n, gen_random_uuid() as id from generate_series(0, 519) as n) as all_elements`, nil, each)
	testwait.Until(p.t, "the end of the fan-out", func() bool {
		var ended int
		p.sql(`select count(*) from callbacks where job_id = $1`, &ended, each)
		return ended > 0
	})
}

// submitManySummaries sends batches whose follow-up jobs consist of summaries.
func (p *gatewayProcess) submitManySummaries() {
	job := `{"jobType": "X", "payload": [` + strings.Repeat(`{"$batch":"summary"},`, 22_000) + `1]}`
	p.unread(30, http.MethodPost, always("/api/batches"), `{"jobs": [], "closed": true, "onComplete": `+job+`, "onFailure": `+job+`}`)
}

// readManyLargeThings requests single large things, whose answers no client reads.
func (p *gatewayProcess) readManyLargeThings() {
	large := `{"jobType": "MAIL", "payload": "` + strings.Repeat("x", 500_000) + `"}`
	for path, asked := range map[string]string{
		"/api/jobs": large, "/api/batches": `{"jobs": [], "onComplete": ` + large + `, "onFailure": ` + large + `}`,
		"/api/schedules": `{"name": "large", "cron": "@yearly", "job": ` + large + `}`,
	} {
		places := map[*client]string{}
		for _, owner := range p.owners {
			made := owner.post(path, asked)
			if made.status/100 != 2 {
				p.t.Fatalf("%s: %d", path, made.status)
			}
			places[owner] = made.header.Get("Location")
		}
		p.unread(200, http.MethodGet, func(c *client) string { return places[c] }, "")
		if path == "/api/schedules" {
			p.unread(200, http.MethodPost, always("/api/schedules/large/pause"), "")
		}
	}
}
