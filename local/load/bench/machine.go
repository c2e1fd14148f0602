package bench

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/jobweaver/jobweaver/local/load/figures"
)

// machine describes this machine.
func machine(ctx context.Context, postgres, river string) figures.Machine {
	m := figures.Machine{
		At: time.Now().UTC().Truncate(time.Second), CPU: procField("/proc/cpuinfo", "model name"), Cores: runtime.NumCPU(),
		OS: runtime.GOOS + "/" + runtime.GOARCH, Go: runtime.Version(), PostgreSQL: postgres, River: river,
	}
	if kib, err := strconv.ParseFloat(strings.TrimSuffix(procField("/proc/meminfo", "MemTotal"), " kB"), 64); err == nil {
		m.MemoryGiB = float64(int(kib/(1<<20)*10)) / 10
	}
	if out, err := exec.CommandContext(ctx, "git", "describe", "--always", "--dirty").Output(); err == nil {
		m.Revision = strings.TrimSpace(string(out))
	}
	return m
}

// procField is the first value of a name in a file of /proc; empty on systems that have none.
func procField(file, name string) string {
	f, err := os.Open(file)
	if err != nil {
		return ""
	}
	defer func() { _ = f.Close() }()
	for scan := bufio.NewScanner(f); scan.Scan(); {
		before, after, _ := strings.Cut(scan.Text(), ":")
		if strings.TrimSpace(before) == name {
			return strings.TrimSpace(after)
		}
	}
	return ""
}

func describe(r figures.Results) string {
	m, s := r.Machine, r.Settings
	return fmt.Sprintf(`%s, %d cores, %.0f GiB, %s; PostgreSQL %s (fsync and synchronous_commit on), %s
%d jobs a round, %d before it to warm up, %d rounds; %d clients, %d jobs a POST
worker: %d slots, %d attempts beside them; River %s: %d workers, fetch cooldown 2 ms, poll 20 ms, inserts of 5,000`,
		m.CPU, m.Cores, m.MemoryGiB, m.OS, m.PostgreSQL, m.Go,
		s.Jobs, s.Warm, s.Rounds, s.Clients, s.Batch, s.Slots, s.SlotQueue, m.River, s.RiverSlots)
}
