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

// teller writes one line at a time, from many followers.
type teller struct {
	mu       sync.Mutex
	out      io.Writer
	patience time.Duration
	silence  *time.Timer
}

// newTeller calls giveUp once no line was written for as long as the patience lasts, unless it is closed before.
func newTeller(out io.Writer, patience time.Duration, giveUp func(error)) *teller {
	return &teller{out: out, patience: patience, silence: time.AfterFunc(patience, func() {
		giveUp(fmt.Errorf("gave up: %w (%s)", errSilence, patience))
	})}
}

func (t *teller) close() { t.silence.Stop() }

func (t *teller) tell(name, what, detail string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.silence.Reset(t.patience)
	fmt.Fprintf(t.out, "%s  %-18s %-10s %s\n", time.Now().Format(clock), name, what, detail)
}
