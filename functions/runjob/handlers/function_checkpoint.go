package handlers

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strconv"
	"strings"
	"time"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/jobweaver/jobweaver/shared/client/durable"
	"github.com/jobweaver/jobweaver/shared/outbound"
)

// The headers by which a function continues where its last attempt ended.
const (
	checkpointHeader = "X-Checkpoint" // of the request and of the response: JSON in ASCII
	snoozeHeader     = "X-Snooze-Ms"  // of a response with 2xx
)

const (
	// maxCallCheckpoint is the most bytes of a function's checkpoint. Many servers refuse headers of more than 8 KiB.
	maxCallCheckpoint = 4 << 10
	maxCallSnooze     = 30 * 24 * time.Hour // as of a pull worker
)

// sendCheckpoint adds what earlier attempts have saved to the request.
// Why a header: docs/decisions/workers.md#a-function-gets-checkpoint-and-event-in-headers
func sendCheckpoint(r *http.Request, a *Attempt) error {
	var saved json.RawMessage
	if found, err := a.Checkpoint.Load(&saved); err != nil || !found {
		return err
	}
	text, err := asciiJSON(saved)
	r.Header.Set(checkpointHeader, text)
	return err
}

// saveCheckpoint saves the checkpoint of an answer, if it has one.
func saveCheckpoint(a *Attempt, answer *outbound.Answer) error {
	text := answer.Header.Get(checkpointHeader)
	if text == "" {
		return nil
	}
	plain, err := asciiJSON([]byte(text))
	switch {
	case err != nil:
		return badOutput("the answer's " + checkpointHeader + " is not JSON: " + err.Error())
	case len(plain) > maxCallCheckpoint:
		return &Failure{Code: durable.TooLarge, Message: fmt.Sprintf(
			"the answer's %s has %d bytes, %d are allowed", checkpointHeader, len(plain), maxCallCheckpoint)}
	}
	return a.Checkpoint.Save(json.RawMessage(plain))
}

// saveOfFailure saves the checkpoint of an answer that is a failure. The failure counts even if the checkpoint cannot
// be saved.
func saveOfFailure(a *Attempt, answer *outbound.Answer) {
	if err := saveCheckpoint(a, answer); err != nil {
		a.Log(slog.LevelWarn, "the checkpoint is not saved: "+err.Error())
	}
}

// snoozeOf returns after what time an answer asks for the next attempt; 0: it does not.
func snoozeOf(answer *outbound.Answer) (time.Duration, *Failure) {
	text := answer.Header.Get(snoozeHeader)
	if text == "" {
		return 0, nil
	}
	const most = int64(maxCallSnooze / time.Millisecond)
	ms, err := strconv.ParseInt(text, 10, 64)
	if err != nil || ms < 1 || ms > most {
		return 0, badOutput(fmt.Sprintf("the answer's %s must be a whole number from 1 to %d", snoozeHeader, most))
	}
	return time.Duration(ms) * time.Millisecond, nil
}

// asciiJSON returns JSON in a form for headers: without spaces outside of its strings, and with escapes for everything
// except visible ASCII.
func asciiJSON(text []byte) (string, error) {
	if !utf8.Valid(text) {
		return "", errors.New("it is not UTF-8")
	}
	var compact bytes.Buffer
	if err := json.Compact(&compact, text); err != nil {
		return "", err
	}
	var b strings.Builder
	for _, r := range compact.String() {
		if r < 0x7f {
			b.WriteRune(r)
			continue
		}
		for _, unit := range utf16.Encode([]rune{r}) {
			fmt.Fprintf(&b, `\u%04x`, unit)
		}
	}
	return b.String(), nil
}
