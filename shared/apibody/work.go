package apibody

import (
	"encoding/json"
	"math"
	"slices"
	"time"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/jobweaver/jobweaver/shared/apierror"
	"github.com/jobweaver/jobweaver/shared/client/durable"
	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/jobspec"
	"github.com/jobweaver/jobweaver/shared/strictjson"
)

// Limits of what pull workers send.
const (
	MaxClaimBytes     = 32 << 10
	MaxHeartbeatBytes = 1 << 20
	MaxSettleBytes    = 4 << 20

	MaxClaimSlots         = 500
	MaxClaimTypes         = 100
	MaxWorkAttempts       = 500 // of one heartbeat or one settle
	maxHeartbeatLines     = 200
	maxHeartbeatLineBytes = 16 << 10
	maxToken              = 200

	MaxClaimWait   = time.Minute
	maxWorkPause   = 30 * 24 * time.Hour // the longest snooze, retry delay and callback timeout
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

// DecodeWorkClaim reads a claim. It returns all problems as an *apierror.Error.
func DecodeWorkClaim(body []byte) (WorkClaim, error) {
	claim := WorkClaim{Slots: defaultSlots, Wait: defaultWait}
	r := newReader(body)
	complete := r.Object(func() {
		switch string(r.Name) {
		case "worker":
			claim.Worker = r.Label(maxWorkerChars)
		case "types":
			claim.Types = r.Names(MaxClaimTypes, func() string { return r.Checked(wrongClaimedType) })
		case "queues":
			if !r.Null() {
				claim.Queues = r.Names(MaxClaimTypes, func() string { return r.Checked(jobspec.WrongQueue) })
			}
		case "slots":
			claim.Slots = int(r.Integer(1, MaxClaimSlots))
		case "wait":
			claim.Wait = r.Duration(MaxClaimWait)
		default:
			r.Unknown()
		}
	})
	if complete && claim.Worker == "" {
		r.BadAt("worker", "is required")
	}
	if complete && len(claim.Types) == 0 {
		r.BadAt("types", "must name at least one job type")
	}
	return claim, r.Close().Err("claim")
}

// wrongClaimedType refuses the type of notices, whose payloads have URLs that are secrets of the owner of the alert.
func wrongClaimedType(jobType string) string {
	if jobType == jobspec.Alert {
		return "is run by the installation alone"
	}
	return jobspec.WrongJobType(jobType)
}

// WorkHeartbeat is a pull worker's heartbeat: the attempts that it still runs.
type WorkHeartbeat struct {
	Worker   string        `json:"worker"`
	Attempts []WorkAttempt `json:"attempts"`
}

// WorkAttempt is an attempt of a WorkHeartbeat.
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

// DecodeWorkHeartbeat reads a heartbeat. It returns all problems as an *apierror.Error.
func DecodeWorkHeartbeat(body []byte) (WorkHeartbeat, error) {
	var heartbeat WorkHeartbeat
	r := newReader(body)
	complete := r.Object(func() {
		switch string(r.Name) {
		case "worker":
			heartbeat.Worker = r.Label(maxWorkerChars)
		case "attempts":
			r.Array(MaxWorkAttempts, func(int) { heartbeat.Attempts = append(heartbeat.Attempts, r.workAttempt()) })
		default:
			r.Unknown()
		}
	})
	if complete && heartbeat.Worker == "" {
		r.BadAt("worker", "is required")
	}
	return heartbeat, r.Close().Err("heartbeat")
}

func (r reader) workAttempt() (a WorkAttempt) {
	complete := r.Object(func() {
		switch string(r.Name) {
		case "token":
			a.Token = r.Label(maxToken)
		case "progress":
			if !r.Null() {
				p := r.progress()
				a.Progress = &p
			}
		case "log":
			if !r.Null() {
				r.Array(maxHeartbeatLines, func(int) { a.Log = append(a.Log, r.workLine()) })
			}
		default:
			r.Unknown()
		}
	})
	if complete && a.Token == "" {
		r.BadIn("token", "is required")
	}
	return a
}

func (r reader) workLine() (line WorkLine) {
	hasText := false
	complete := r.Object(func() {
		switch string(r.Name) {
		case "level":
			line.Level = r.OneOf([]string{"debug", "info", "warn", "error"})
		case "text":
			hasText = true
			line.Text, _ = r.Text(maxHeartbeatLineBytes)
		default:
			r.Unknown()
		}
	})
	if complete && !hasText {
		r.BadIn("text", "is required")
	}
	return line
}

// WorkStatus is the status of a result.
type WorkStatus string

// The statuses of a WorkResult.
const (
	WorkCompleted WorkStatus = "COMPLETED"
	WorkFailed    WorkStatus = "FAILED"
	WorkSnoozed   WorkStatus = "SNOOZED"
	WorkWaiting   WorkStatus = "WAITING"
)

// WorkSettle has the results of attempts.
type WorkSettle struct {
	Worker  string       `json:"worker"`
	Results []WorkResult `json:"results"`
}

// WorkResult is the result of one attempt.
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

// workMembers has the members that are allowed with one status only.
var workMembers = map[string]WorkStatus{
	"output": WorkCompleted, "errorCode": WorkFailed, "message": WorkFailed, "retryable": WorkFailed,
	"retryAfterMs": WorkFailed, "delayMs": WorkSnoozed, "callbackTimeoutMs": WorkWaiting,
}

// DecodeWorkSettle reads the outcomes of attempts. The error means that the whole body is unusable; a wrong result has
// an error of its own.
func DecodeWorkSettle(body []byte) (WorkSettle, error) {
	worker, raw, err := decodeWorkList(body, "settle", "results")
	if err != nil {
		return WorkSettle{}, err
	}
	settle := WorkSettle{Worker: worker}
	for _, one := range raw {
		settle.Results = append(settle.Results, decodeWorkResult(one))
	}
	return settle, nil
}

// decodeWorkList reads a body with the name of a pull worker and a list. It leaves it to the caller to find out what is
// wrong with an entry, so that a wrong one does not spoil the others.
func decodeWorkList(body []byte, what, list string) (worker string, raw []json.RawMessage, err error) {
	lenient := []jsontext.Options{jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true)}
	r := reader{Reader: strictjson.NewReader(body, "", lenient...)}
	given := map[string]bool{}
	complete := r.Object(func() {
		name := string(r.Name)
		if name != "worker" && name != list {
			r.Unknown()
			return
		}
		if given[name] {
			r.BadAt(name, "is there twice")
		}
		given[name] = true
		if name == "worker" {
			worker = r.Label(maxWorkerChars)
			return
		}
		r.Array(MaxWorkAttempts, func(int) { raw = append(raw, slices.Clone(json.RawMessage(r.Raw()))) })
	})
	switch {
	case complete && worker == "":
		r.BadAt("worker", "is required")
	case !utf8.ValidString(worker):
		r.BadAt("worker", "must be UTF-8")
	}
	if complete && len(raw) == 0 {
		r.BadAt(list, "must have at least one entry")
	}
	return worker, raw, r.Close().Err(what)
}

func decodeWorkResult(body []byte) WorkResult {
	r := reader{strictjson.NewReader(body, ""), strictjson.Scan(body, "")}
	result := r.workResult()
	if err := r.Close().Err("result"); err != nil {
		return WorkResult{Token: result.Token, Wrong: err}
	}
	return result
}

func (r reader) workResult() WorkResult {
	result := WorkResult{Retryable: true}
	given := map[string]bool{}
	complete := r.Object(func() {
		name := string(r.Name)
		if workMembers[name] != "" && r.Null() {
			return
		}
		given[name] = true
		switch name {
		case "token":
			result.Token = r.Label(maxToken)
		case "status":
			result.Status = WorkStatus(r.OneOf([]string{
				string(WorkCompleted), string(WorkFailed), string(WorkSnoozed), string(WorkWaiting),
			}))
		case "output":
			result.Output = r.output()
		case "errorCode":
			result.ErrorCode = r.Checked(jobspec.WrongErrorCode)
		case "message":
			result.Message, _ = r.Text(jobspec.MaxMessage)
		case "retryable":
			result.Retryable = r.Boolean()
		case "retryAfterMs":
			result.RetryAfter = r.Millis(minWorkPause, maxWorkPause)
		case "delayMs":
			result.Snooze = r.Millis(minWorkPause, maxWorkPause)
		case "callbackTimeoutMs":
			result.CallbackTimeout = r.Millis(minWorkPause, maxWorkPause)
		default:
			r.Unknown()
		}
	})
	if complete {
		r.checkWorkResult(&result, given)
	}
	return result
}

func (r reader) checkWorkResult(result *WorkResult, given map[string]bool) {
	for _, name := range []string{"token", "status"} {
		if !given[name] {
			r.BadAt(name, "is required")
		}
	}
	for _, name := range []string{
		"output", "errorCode", "message", "retryable", "retryAfterMs", "delayMs", "callbackTimeoutMs",
	} {
		if only := workMembers[name]; given[name] && result.Status != "" && result.Status != only {
			r.BadAt(name, "goes only with status %s", only)
		}
	}
	switch {
	case result.Status == WorkSnoozed && !given["delayMs"]:
		r.BadAt("delayMs", "is required with status SNOOZED")
	case result.Status == WorkWaiting && !given["callbackTimeoutMs"]:
		r.BadAt("callbackTimeoutMs", "is required with status WAITING")
	case result.Status == WorkFailed && !given["errorCode"]:
		result.ErrorCode = string(apierror.HandlerFailed)
	}
}

// WorkCheckpoints has checkpoints of attempts to be saved.
type WorkCheckpoints struct {
	Worker      string           `json:"worker"`
	Checkpoints []WorkCheckpoint `json:"checkpoints"`
}

// WorkCheckpoint is the checkpoint of one attempt.
type WorkCheckpoint struct {
	Token      string          `json:"token"`
	Number     int64           `json:"number"`
	Checkpoint json.RawMessage `json:"checkpoint"` // part of the body

	Wrong error `json:"-"` // an *apierror.Error: this checkpoint cannot be used
}

// DecodeWorkCheckpoints reads checkpoints. The error means that the whole body is unusable; a wrong checkpoint has an
// error of its own.
func DecodeWorkCheckpoints(body []byte) (WorkCheckpoints, error) {
	worker, raw, err := decodeWorkList(body, "checkpoints", "checkpoints")
	if err != nil {
		return WorkCheckpoints{}, err
	}
	all := WorkCheckpoints{Worker: worker}
	for _, one := range raw {
		all.Checkpoints = append(all.Checkpoints, decodeWorkCheckpoint(one))
	}
	return all, nil
}

func decodeWorkCheckpoint(body []byte) (one WorkCheckpoint) {
	r := reader{strictjson.NewReader(body, ""), strictjson.Scan(body, "")}
	given := map[string]bool{}
	complete := r.Object(func() {
		given[string(r.Name)] = true
		switch string(r.Name) {
		case "token":
			one.Token = r.Label(maxToken)
		case "number":
			one.Number = r.Integer(1, math.MaxInt32)
		case "checkpoint":
			one.Checkpoint = json.RawMessage(r.Raw())
		default:
			r.Unknown()
		}
	})
	for _, name := range []string{"token", "number", "checkpoint"} {
		if complete && !given[name] {
			r.BadAt(name, "is required")
		}
	}
	if one.Wrong = r.Close().Err("checkpoint"); one.Wrong == nil && len(one.Checkpoint) > durable.MaxBytes {
		one.Wrong = apierror.New(apierror.CheckpointTooLarge, "the checkpoint has %d bytes, %d are allowed",
			len(one.Checkpoint), durable.MaxBytes)
	}
	return one
}
