package jobspec

import (
	"encoding/json"
	"slices"
	"time"

	"github.com/jobweaver/jobweaver/shared/apierror"
	"github.com/jobweaver/jobweaver/shared/jobevent"
)

// Limits of what pull workers send.
const (
	MaxClaimBytes  = 32 << 10
	MaxBeatBytes   = 1 << 20
	MaxSettleBytes = 4 << 20

	MaxClaimSlots    = 500
	MaxClaimTypes    = 100
	MaxWorkAttempts  = 500 // of one beat or one settle
	maxBeatLines     = 200
	maxBeatLineBytes = 16 << 10
	maxToken         = 200

	MaxClaimWait   = time.Minute
	maxWorkPause   = 30 * 24 * time.Hour // of a snooze, a delay of a retry, and for a callback
	minWorkPause   = time.Millisecond
	defaultWait    = 30 * time.Second
	defaultSlots   = 1
	maxWorkerChars = 128
)

// WorkClaim asks for attempts.
type WorkClaim struct {
	Worker string        `json:"worker"`
	Types  []string      `json:"types"`
	Queues []string      `json:"queues"` // empty: any
	Slots  int           `json:"slots"`
	Wait   time.Duration `json:"wait"`
}

// DecodeWorkClaim reads one. It says all that is wrong, as an *apierror.Error.
func DecodeWorkClaim(body []byte) (WorkClaim, error) {
	claim := WorkClaim{Slots: defaultSlots, Wait: defaultWait}
	if p := scanProblems(body, ""); p != nil {
		return claim, p.errIn("claim")
	}
	r := newReader(body, "")
	complete := r.object(func() {
		switch string(r.name) {
		case "worker":
			claim.Worker = r.label(maxWorkerChars)
		case "types":
			claim.Types = r.names(MaxClaimTypes, func() string { return r.checked(checkJobType) })
		case "queues":
			if !r.null() {
				claim.Queues = r.names(MaxClaimTypes, func() string { return r.checked(checkQueue) })
			}
		case "slots":
			claim.Slots = int(r.integer(1, MaxClaimSlots))
		case "wait":
			claim.Wait = r.duration(MaxClaimWait)
		default:
			r.unknown()
		}
	})
	if complete && claim.Worker == "" {
		r.badAt("worker", "is required")
	}
	if complete && len(claim.Types) == 0 {
		r.badAt("types", "must name at least one job type")
	}
	return claim, r.close().errIn("claim")
}

// names reads an array of different names.
func (r *reader) names(most int, read func() string) []string {
	names := []string{}
	r.array(most, func(int) {
		name := read()
		if slices.Contains(names, name) {
			r.bad("is there twice")
			return
		}
		names = append(names, name)
	})
	return names
}

// duration reads one as Go writes it, as 30s or 500ms.
func (r *reader) duration(most time.Duration) time.Duration {
	text, ok := r.text(MaxKey)
	if !ok {
		return 0
	}
	d, err := time.ParseDuration(text)
	if err != nil || d < 0 || d > most {
		r.bad("must be a duration from 0s to %s, as 30s or 500ms", most)
		return 0
	}
	return d
}

// WorkBeat is a pull worker's sign that it still has attempts.
type WorkBeat struct {
	Worker   string        `json:"worker"`
	Attempts []WorkAttempt `json:"attempts"`
}

// WorkAttempt is one of a WorkBeat.
type WorkAttempt struct {
	Token    string             `json:"token"`
	Progress *jobevent.Progress `json:"progress,omitempty"` // nil: as before
	Log      []WorkLine         `json:"log,omitempty"`
}

// WorkLine is a line of an attempt's log.
type WorkLine struct {
	Level string `json:"level"` // debug, info, warn or error; empty: info
	Text  string `json:"text"`
}

// DecodeWorkBeat reads one. It says all that is wrong, as an *apierror.Error.
func DecodeWorkBeat(body []byte) (WorkBeat, error) {
	var beat WorkBeat
	if p := scanProblems(body, ""); p != nil {
		return beat, p.errIn("beat")
	}
	r := newReader(body, "")
	complete := r.object(func() {
		switch string(r.name) {
		case "worker":
			beat.Worker = r.label(maxWorkerChars)
		case "attempts":
			r.array(MaxWorkAttempts, func(int) { beat.Attempts = append(beat.Attempts, r.workAttempt()) })
		default:
			r.unknown()
		}
	})
	if complete && beat.Worker == "" {
		r.badAt("worker", "is required")
	}
	return beat, r.close().errIn("beat")
}

func (r *reader) workAttempt() (a WorkAttempt) {
	complete := r.object(func() {
		switch string(r.name) {
		case "token":
			a.Token = r.label(maxToken)
		case "progress":
			if !r.null() {
				p := r.progress()
				a.Progress = &p
			}
		case "log":
			if !r.null() {
				r.array(maxBeatLines, func(int) { a.Log = append(a.Log, r.workLine()) })
			}
		default:
			r.unknown()
		}
	})
	if complete && a.Token == "" {
		r.badIn("token", "is required")
	}
	return a
}

func (r *reader) workLine() (line WorkLine) {
	r.object(func() {
		switch string(r.name) {
		case "level":
			line.Level = r.oneOf([]string{"debug", "info", "warn", "error"})
		case "text":
			line.Text, _ = r.text(maxBeatLineBytes)
		default:
			r.unknown()
		}
	})
	return line
}

// WorkStatus is what became of an attempt by its pull worker.
type WorkStatus string

// The statuses of a WorkResult.
const (
	WorkCompleted WorkStatus = "COMPLETED"
	WorkFailed    WorkStatus = "FAILED"
	WorkSnoozed   WorkStatus = "SNOOZED"
	WorkWaiting   WorkStatus = "WAITING"
)

// WorkSettle is what became of attempts.
type WorkSettle struct {
	Worker  string       `json:"worker"`
	Results []WorkResult `json:"results"`
}

// WorkResult is what became of one attempt.
type WorkResult struct {
	Token  string     `json:"token"`
	Status WorkStatus `json:"status"`

	Output          json.RawMessage `json:"output,omitempty"` // of WorkCompleted; nil: none. Part of the body
	ErrorCode       string          `json:"errorCode,omitempty"`
	Message         string          `json:"message,omitempty"`
	Retryable       bool            `json:"retryable,omitempty"`
	RetryAfter      time.Duration   `json:"retryAfter,omitempty"`      // of WorkFailed; 0: the job's policy decides
	Snooze          time.Duration   `json:"snooze,omitempty"`          // of WorkSnoozed
	CallbackTimeout time.Duration   `json:"callbackTimeout,omitempty"` // of WorkWaiting

	Wrong error `json:"-"` // an *apierror.Error: this result cannot be used
}

// workMembers are those that go with one status only.
var workMembers = map[string]WorkStatus{
	"output": WorkCompleted, "errorCode": WorkFailed, "message": WorkFailed, "retryable": WorkFailed,
	"retryAfterMs": WorkFailed, "delayMs": WorkSnoozed, "callbackTimeoutMs": WorkWaiting,
}

// DecodeWorkSettle reads one. The error is for what makes all of it useless; a result that is wrong has its own.
func DecodeWorkSettle(body []byte) (WorkSettle, error) {
	var settle WorkSettle
	var raw []json.RawMessage
	r := newReader(body, "")
	complete := r.object(func() {
		switch string(r.name) {
		case "worker":
			settle.Worker = r.label(maxWorkerChars)
		case "results":
			r.array(MaxWorkAttempts, func(int) { raw = append(raw, slices.Clone(json.RawMessage(r.raw()))) })
		default:
			r.unknown()
		}
	})
	if complete && settle.Worker == "" {
		r.badAt("worker", "is required")
	}
	if complete && len(raw) == 0 {
		r.badAt("results", "must have at least one entry")
	}
	if err := r.close().errIn("settle"); err != nil {
		return settle, err
	}
	for _, one := range raw {
		settle.Results = append(settle.Results, decodeWorkResult(one))
	}
	return settle, nil
}

func decodeWorkResult(body []byte) WorkResult {
	unsound := scanProblems(body, "")
	r := newReader(body, "")
	result := r.workResult()
	p := r.close()
	if unsound != nil {
		p = unsound
	}
	if err := p.errIn("result"); err != nil {
		return WorkResult{Token: result.Token, Wrong: err}
	}
	return result
}

func (r *reader) workResult() WorkResult {
	result := WorkResult{Retryable: true}
	given := map[string]bool{}
	complete := r.object(func() {
		name := string(r.name)
		if workMembers[name] != "" && r.null() {
			return
		}
		given[name] = true
		switch name {
		case "token":
			result.Token = r.label(maxToken)
		case "status":
			result.Status = WorkStatus(r.oneOf([]string{
				string(WorkCompleted), string(WorkFailed), string(WorkSnoozed), string(WorkWaiting),
			}))
		case "output":
			result.Output = r.output()
		case "errorCode":
			result.ErrorCode = r.checked(checkErrorCode)
		case "message":
			result.Message, _ = r.text(MaxMessage)
		case "retryable":
			result.Retryable = r.boolean()
		case "retryAfterMs":
			result.RetryAfter = r.millis(minWorkPause, maxWorkPause)
		case "delayMs":
			result.Snooze = r.millis(minWorkPause, maxWorkPause)
		case "callbackTimeoutMs":
			result.CallbackTimeout = r.millis(minWorkPause, maxWorkPause)
		default:
			r.unknown()
		}
	})
	if complete {
		r.checkWorkResult(&result, given)
	}
	return result
}

func (r *reader) checkWorkResult(result *WorkResult, given map[string]bool) {
	for _, name := range []string{"token", "status"} {
		if !given[name] {
			r.badAt(name, "is required")
		}
	}
	for _, name := range []string{
		"output", "errorCode", "message", "retryable", "retryAfterMs", "delayMs", "callbackTimeoutMs",
	} {
		if only := workMembers[name]; given[name] && result.Status != "" && result.Status != only {
			r.badAt(name, "goes only with status %s", only)
		}
	}
	switch {
	case result.Status == WorkSnoozed && !given["delayMs"]:
		r.badAt("delayMs", "is required with status SNOOZED")
	case result.Status == WorkWaiting && !given["callbackTimeoutMs"]:
		r.badAt("callbackTimeoutMs", "is required with status WAITING")
	case result.Status == WorkFailed && !given["errorCode"]:
		result.ErrorCode = string(apierror.HandlerFailed)
	}
}
