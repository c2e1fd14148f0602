package peerload_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/jobweaver/jobweaver/local/load/peerload"
)

// instant is a peer that runs each job at once, but reports it as open in one more answer.
type instant struct {
	mu     sync.Mutex
	ran    int
	asked  int
	starts map[int]int64
}

func (p *instant) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	var answer any = struct{}{}
	switch r.URL.Path {
	case "/jobs":
		var body struct{ Jobs []struct{ Num int } }
		if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		for _, job := range body.Jobs {
			p.ran++
			if job.Num > 0 {
				p.starts[job.Num] = time.Now().UnixMicro()
			}
		}
	case "/load":
		var body struct{ Jobs int }
		_ = json.NewDecoder(r.Body).Decode(&body)
		p.ran += body.Jobs
	case "/state":
		p.asked++
		answer = map[string]any{"open": p.asked == 1, "ran": p.ran}
	case "/starts":
		answer = p.starts
	}
	_ = json.NewEncoder(w).Encode(answer)
}

func TestLoadOnAPeerIsFollowedToItsEnd(t *testing.T) {
	t.Parallel()
	for _, pushes := range []bool{false, true} {
		p := &instant{starts: map[int]int64{}}
		server := httptest.NewServer(p)
		c := peerload.New(server.URL, pushes)
		took, err := c.Throughput(t.Context(), 25, 2, 10)
		if err != nil || took == 0 || p.ran != 25 || p.asked < 2 {
			t.Errorf("pushes %v: %v, %v, %d ran, asked %d times", pushes, took, err, p.ran, p.asked)
		}
		starts, err := c.Steady(t.Context(), 100, 100*time.Millisecond)
		if err != nil || len(starts) != 10 {
			t.Errorf("pushes %v: %d starts, %v", pushes, len(starts), err)
		}
		c.Close()
		server.Close()
	}
}
