//go:build !race

package handlers_test

import (
	"fmt"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// peak samples the size of the heap until it is stopped, and returns the maximum.
func peak() (most func() uint64) {
	var seen atomic.Uint64
	stop, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for tick := time.NewTicker(5 * time.Millisecond); ; {
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			seen.Store(max(seen.Load(), m.HeapAlloc))
			select {
			case <-tick.C:
			case <-stop:
				tick.Stop()
				return
			}
		}
	}()
	return func() uint64 {
		close(stop)
		<-done
		return seen.Load()
	}
}

// Not parallel: other tests would use memory too.
func TestAMillionRowsTakeLittleMemory(t *testing.T) {
	if testing.Short() {
		t.Skip("the race detector takes memory of its own")
	}
	r, _ := dated(t)
	if _, err := r.run(t.Context(), ask("many", `{"n": 1000}`, "")); err != nil { // so that everything is loaded
		t.Fatal(err)
	}
	for format, c := range map[string]struct {
		rows int
		most uint64 // MiB more than idle
	}{"csv": {1_000_000, 64}, "html": {300_000, 64}, "xlsx": {300_000, 128}} {
		runtime.GC()
		var idle runtime.MemStats
		runtime.ReadMemStats(&idle)
		most, began := peak(), time.Now()
		r.progress = nil
		out, err := r.run(t.Context(), fmt.Sprintf(
			`{"title": "T", "format": %q, "query": "many", "parameters": {"n": %d}, "columns": [{"name": "id"}, {"name": "customer"}, {"name": "amount", "total": "sum"}, {"name": "at"}]}`,
			format, c.rows))
		more := max(most(), idle.HeapAlloc) - idle.HeapAlloc
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("%s: %d rows, %d bytes in %s, %d MiB of memory, %d reports of progress",
			format, out.Rows, out.Size, time.Since(began), more>>20, len(r.progress))
		if out.Rows != c.rows || more > c.most<<20 {
			t.Errorf("%s: %d rows took %d MiB", format, out.Rows, more>>20)
		}
		for _, p := range r.progress {
			if p.Percent != 0 || !strings.HasSuffix(p.Message, " rows") {
				t.Errorf("progress %+v", p)
			}
		}
		if text := r.text(out); format == "csv" && !strings.HasSuffix(string(text), "\nTotal,,5000005000.00,\n") {
			t.Errorf("ends with %q", text[len(text)-60:])
		}
	}
}
