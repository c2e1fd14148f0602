// Package witness is the file in which handlers record what they do, line by line, independent of their process and
// of every database.
package witness

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"time"

	"github.com/google/uuid"
)

// The recorded events.
const (
	Worker = "worker" // a worker has started; How is its id
	Start  = "start"  // a handler has started
	End    = "end"    // a handler is about to return; How is the result

	Loaded = "loaded" // a handler that counts has started with a checkpoint; How is the number in it
	Saved  = "saved"  // its next number was saved; How is the number

	Answered = "answered" // a pull worker's settle was answered; How is the status, followed by Again for a repeated one
)

// Again follows the status of a result that was sent more than once.
const Again = " again"

// How a handler ends, besides the reasons for which its context ended.
const (
	OK      = "ok"
	Failed  = "failed"
	Snoozed = "snoozed"
	Panic   = "panic"
)

// Line is one recorded event.
type Line struct {
	What    string    `json:"what"`
	Process string    `json:"process"` // the writer: a name that is new at each start
	Job     uuid.UUID `json:"job,omitzero"`
	Attempt int       `json:"attempt,omitempty"`
	Key     string    `json:"key,omitempty"` // of the job's payload
	How     string    `json:"how,omitempty"`
	At      time.Time `json:"at"`
}

// width is the width of a line in the file, its end included. It divides the size of a page, so that a line is
// written whole or not at all, even by a process that is killed while it writes.
const width = 512

// Writer appends lines to the file, which other processes write as well.
type Writer struct {
	file    *os.File
	process string
}

// Open opens the file for a process, which must have a name of its own.
func Open(path, process string) (*Writer, error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open witness file: %w", err)
	}
	return &Writer{file, process}, nil
}

// Write appends a line, in a single write.
func (w *Writer) Write(l Line) error {
	l.Process, l.At = w.process, time.Now().UTC()
	text, err := json.Marshal(l)
	if err != nil {
		return fmt.Errorf("write to witness file: %w", err)
	}
	if len(text) >= width {
		return fmt.Errorf("write to witness file: %d bytes do not fit a line", len(text))
	}
	text = append(text, bytes.Repeat([]byte{' '}, width-len(text))...)
	text[width-1] = '\n'
	if _, err := w.file.Write(text); err != nil {
		return fmt.Errorf("write to witness file: %w", err)
	}
	return nil
}

// Read returns all lines, in the order in which they were written.
func Read(path string) ([]Line, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read witness file: %w", err)
	}
	if len(text)%width != 0 {
		return nil, fmt.Errorf("read witness file: %d bytes are no whole lines", len(text))
	}
	lines := make([]Line, len(text)/width)
	for i := range lines {
		if err := json.Unmarshal(text[i*width:(i+1)*width], &lines[i]); err != nil {
			return nil, fmt.Errorf("read line %d of witness file: %w", i, err)
		}
	}
	return lines, nil
}
