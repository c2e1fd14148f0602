package pool

import (
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/jobweaver/jobweaver/shared/jobevent"
)

// MaxLogLines is how many log lines of an attempt are kept, the last of which is LogIsFull.
const MaxLogLines = 200

// LogIsFull is the last line of a log that was cut off.
const LogIsFull = "truncated: an attempt's log holds 200 lines and 64 KiB"

// AttemptLog collects an attempt's log lines until they are published. Its zero value is ready to use.
type AttemptLog struct {
	mu    sync.Mutex
	lines []jobevent.LogLine // not drained yet
	first int                // number of lines[0]
	bytes int                // of all lines so far, drained ones too
	full  bool
	seal  func(text string) string // nil: lines are kept as they are
}

// Add adds a line while the log is within its limits, and then LogIsFull.
func (l *AttemptLog) Add(level slog.Level, text string) {
	now := time.Now().UTC()
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.full {
		return
	}
	room := maxLogBytes - l.bytes
	text = Clean(text, room)
	l.bytes += len(text)
	room -= len(text)
	if l.seal != nil {
		text = l.seal(text)
	}
	l.lines = append(l.lines, jobevent.LogLine{At: now, Level: strings.ToLower(level.String()), Text: text})
	// The last line is reserved for LogIsFull.
	if l.first+len(l.lines) == MaxLogLines-1 || room < len(more) {
		l.full = true
		l.lines = append(l.lines, jobevent.LogLine{At: now, Level: "warn", Text: LogIsFull})
	}
}

// Drain returns the lines since its last call, and the number of the first of them.
func (l *AttemptLog) Drain() (lines []jobevent.LogLine, first int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	lines, first = l.lines, l.first
	l.first += len(lines)
	l.lines = nil
	return lines, first
}

// more is the end of a text that was cut.
const more = "…"

// Clean makes text storable and short: valid UTF-8 without NUL, since PostgreSQL's text allows nothing else, and at
// most limit bytes. limit must have room for more.
func Clean(text string, limit int) string {
	if len(text) > limit {
		text = text[:limit-len(more)] + more
	}
	text = strings.ToValidUTF8(text, "")
	if strings.IndexByte(text, 0) >= 0 {
		text = strings.ReplaceAll(text, "\x00", "")
	}
	return text
}
