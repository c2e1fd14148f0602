package interplay

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/jobweaver/jobweaver/infra/laptop/freeport"
)

var (
	runFor     = flag.Duration("interplay.for", 0, "how long programs are run; 0: skip")
	seedText   = flag.String("interplay.seed", "", "the first seed; empty: a new one")
	atOnce     = flag.Int("interplay.at-once", 3, "programs that run at once, each for two owners")
	keep       = flag.String("interplay.keep", "", "a folder for the records of all programs")
	program    = flag.String("interplay.program", "", "a file with a program, which is run in place of random ones")
	fixedSeeds = flag.String("interplay.seeds", "", "seeds that are run first, however long it takes")
	shrinkFor  = flag.Duration("interplay.shrink", 3*time.Minute, "how long the first program that fails is shortened")
)

func TestMain(m *testing.M) {
	RunApart()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	is, err := RunChild(ctx)
	stop()
	switch {
	case err != nil:
		_, _ = os.Stderr.WriteString(err.Error() + "\n")
		os.Exit(1)
	case is:
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func TestProgramsKeepEveryPromise(t *testing.T) {
	t.Parallel()
	if *runFor == 0 && *program == "" {
		t.Skip("make interplay runs it")
	}
	i := start(t)
	r := &rounds{t: t, i: i, end: time.Now().Add(*runFor)}
	if *program != "" {
		r.again(*program)
		return
	}
	seeds, fresh := r.seeds()
	var all sync.WaitGroup
	for range *atOnce {
		all.Go(func() {
			for {
				seed, ok := r.next(seeds, fresh)
				if !ok || t.Context().Err() != nil {
					return
				}
				r.run(NewProgram(seed))
			}
		})
	}
	all.Wait()
	t.Logf("%s", &r.matrix)
	if r.matrix.runs == 0 {
		t.Error("no handler was started")
	}
	r.explain()
}

// rounds runs one program after another.
type rounds struct {
	t      *testing.T
	i      *Installation
	end    time.Time
	matrix Matrix
	taken  atomic.Int64
	owners atomic.Int64

	mu     sync.Mutex
	failed []*Record
}

// seeds returns the fixed seeds, and the first one of those that follow.
func (r *rounds) seeds() (fixed []uint64, fresh uint64) {
	for text := range strings.SplitSeq(*fixedSeeds, ",") {
		if n, err := strconv.ParseUint(text, 10, 64); err == nil {
			fixed = append(fixed, n)
		}
	}
	fresh = rand.Uint64N(1 << 32)
	if *seedText != "" {
		var err error
		if fresh, err = strconv.ParseUint(*seedText, 10, 64); err != nil {
			r.t.Fatalf("read -interplay.seed: %v", err)
		}
	}
	r.t.Logf("the first fresh seed is %d, again with INTERPLAY_SEED=%d", fresh, fresh)
	return fixed, fresh
}

func (r *rounds) next(fixed []uint64, fresh uint64) (seed uint64, ok bool) {
	n := int(r.taken.Add(1)) - 1
	if n < len(fixed) {
		return fixed[n], true
	}
	return fresh + uint64(n-len(fixed)), time.Now().Before(r.end) //nolint:gosec // it is positive
}

// try runs a program once.
func (r *rounds) try(p Program) []*Record {
	records, err := r.i.Run(r.t.Context(), p, fmt.Sprintf("p%d-%d", p.Seed, r.owners.Add(1)))
	if err != nil {
		r.t.Error(err)
		return nil
	}
	for _, rec := range records {
		if *keep != "" {
			store(r.t, filepath.Join(*keep, rec.Owner+".json"), rec)
		}
	}
	return records
}

func (r *rounds) run(p Program) {
	for _, rec := range r.try(p) {
		found := Check(rec)
		r.matrix.Add(rec)
		r.t.Logf("seed %d, %s: %d steps, %d jobs, %d starts, %.1f s, %d violations", p.Seed, rec.Owner, len(p.Steps), len(rec.Jobs),
			len(rec.Runs), time.Since(rec.Began).Seconds(), len(found))
		for _, v := range found {
			r.t.Errorf("seed %d, %s: %s", p.Seed, rec.Owner, v)
		}
		if len(found) > 0 {
			r.mu.Lock()
			r.failed = append(r.failed, rec)
			r.mu.Unlock()
		}
	}
}

func store(t *testing.T, path string, value any) {
	text, err := json.MarshalIndent(value, "", " ")
	if err == nil {
		err = os.MkdirAll(filepath.Dir(path), 0o700)
	}
	if err == nil {
		err = os.WriteFile(path, text, 0o600)
	}
	if err != nil {
		t.Error(err)
	}
}

// explain shortens the first program that failed, and prints it.
func (r *rounds) explain() {
	if len(r.failed) == 0 || *shrinkFor == 0 {
		return
	}
	first := r.failed[0]
	rule := Check(first)[0].Rule.Name
	r.t.Logf("shortening seed %d, which broke %q, for at most %s", first.Program.Seed, rule, *shrinkFor)
	end := time.Now().Add(*shrinkFor)
	endWithin = min(endWithin, 45*time.Second) // a shorter program ends sooner
	last := first
	Shorten(first.Program, func(candidates []Program) *Program {
		for part := range slices.Chunk(candidates, 3) {
			if time.Now().After(end) {
				return nil
			}
			var mu sync.Mutex
			var shorter *Program
			var all sync.WaitGroup
			for _, p := range part {
				for range 2 {
					all.Go(func() {
						for _, rec := range r.try(p) {
							mu.Lock()
							if shorter == nil && slices.ContainsFunc(Check(rec), func(v Violation) bool { return v.Rule.Name == rule }) {
								shorter, last = &p, rec
							}
							mu.Unlock()
						}
					})
				}
			}
			all.Wait()
			if shorter != nil {
				return shorter
			}
		}
		return nil
	})
	path := filepath.Join(os.TempDir(), fmt.Sprintf("interplay-%d.json", last.Program.Seed))
	store(r.t, path, last.Program)
	r.t.Logf("seed %d, %d steps; INTERPLAY_PROGRAM=%s make interplay runs it again\n%s", last.Program.Seed, len(last.Program.Steps), path, Script(last))
	for _, v := range Check(last) {
		r.t.Logf("%s", v)
	}
}

// again runs one program several times side by side.
func (r *rounds) again(path string) {
	text, err := os.ReadFile(path)
	if err != nil {
		r.t.Fatal(err)
	}
	var p Program
	if err := json.Unmarshal(text, &p); err != nil {
		r.t.Fatal(err)
	}
	var all sync.WaitGroup
	for range *atOnce {
		all.Go(func() { r.run(p) })
	}
	all.Wait()
}

func start(t *testing.T) *Installation {
	t.Helper()
	port, err := strconv.Atoi(freeport.For(t))
	if err != nil {
		t.Fatal(err)
	}
	kafka, err := strconv.Atoi(freeport.For(t))
	if err != nil {
		t.Fatal(err)
	}
	dir, err := os.MkdirTemp("", "jobweaver-interplay-")
	if err != nil {
		t.Fatal(err)
	}
	i, err := Start(t.Context(), dir, port, kafka)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := i.Stop(); err != nil {
			t.Error(err)
		}
		if t.Failed() {
			t.Logf("logs and data are in %s", dir)
			return
		}
		_ = os.RemoveAll(dir)
	})
	return i
}
