package demo

import (
	"errors"
	"fmt"
	"io"
	"sync"
	"time"
)

const clock = "15:04:05.000"

var errSilence = errors.New("nothing happened for too long")

// printer prints one line at a time, for many followers.
type printer struct {
	mu       sync.Mutex
	out      io.Writer
	patience time.Duration
	silence  *time.Timer
}

// newPrinter makes a printer that calls giveUp if nothing is printed for the time of patience, unless it is closed
// before.
func newPrinter(out io.Writer, patience time.Duration, giveUp func(error)) *printer {
	return &printer{out: out, patience: patience, silence: time.AfterFunc(patience, func() {
		giveUp(fmt.Errorf("gave up: %w (%s)", errSilence, patience))
	})}
}

func (t *printer) close() { t.silence.Stop() }

func (t *printer) print(name, what, detail string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.silence.Reset(t.patience)
	fmt.Fprintf(t.out, "%s  %-18s %-10s %s\n", time.Now().Format(clock), name, what, detail)
}
