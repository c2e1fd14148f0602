package pool

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/jobweaver/jobweaver/functions/runjob/handlers"
	"github.com/jobweaver/jobweaver/shared/apierror"
	"github.com/jobweaver/jobweaver/shared/client/durable"
	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/jobspec"
	"github.com/jobweaver/jobweaver/shared/sealing"
)

// SealWith seals everything that the attempt's handler reports and returns. A nil sealer changes nothing.
func (a *Attempt) SealWith(sealer *sealing.Sealer) {
	if a.sealer = sealer; sealer != nil {
		a.Log.seal = func(text string) string { return sealer.SealText(a.spot(sealing.LogLine), text) }
	}
}

func (a *Attempt) spot(field sealing.Field) sealing.Place {
	return sealing.OfAttempt(a.Run.JobID, a.Run.Attempt, field)
}

// Opened has the parts of an attempt that its handler receives.
type Opened struct {
	Run        jobevent.Run // with the payload opened, and with the outputs to which it refers
	Checkpoint json.RawMessage
	Parents    []jobevent.Parent
}

// Open opens what the attempt has. The failure to open something is retryable: this worker may get the key later.
func (a *Attempt) Open() (opened Opened, failure *handlers.Failure) {
	run := a.Run
	var checkpoint json.RawMessage
	what := "payload"
	payload, err := a.sealer.Open(sealing.OfJob(run.JobID, sealing.Payload), run.Payload)
	if err == nil && a.Checkpoint != nil {
		a.HasCheckpoint.Store(true)
		what = "checkpoint"
		checkpoint, err = a.sealer.Open(sealing.OfJob(run.JobID, sealing.Checkpoint), a.Checkpoint)
	}
	if err != nil {
		return opened, cannotBeRead(what, err)
	}
	opened = Opened{Run: run, Checkpoint: checkpoint}
	opened.Run.Payload = payload
	if run.Parents != nil {
		failure = a.openParents(&opened)
	}
	return opened, failure
}

func cannotBeRead(what string, err error) *handlers.Failure {
	return &handlers.Failure{
		Code: string(apierror.PayloadSealed), Message: "the " + what + " cannot be read: " + err.Error(), Retryable: true,
	}
}

// openParents opens the outputs of parents, and puts them into the payload. Its other failures are final: outputs do
// not change.
func (a *Attempt) openParents(opened *Opened) *handlers.Failure {
	if err := json.Unmarshal(a.Run.Parents, &opened.Parents); err != nil {
		return &handlers.Failure{Code: string(apierror.OutputMissing), Message: "the outputs of other jobs are not readable"}
	}
	outputs := make(map[string]jsontext.Value, len(opened.Parents))
	for i := range opened.Parents {
		parent := &opened.Parents[i]
		if parent.OutputBytes > jobevent.MaxParentBytes {
			const tooLarge = "the outputs to which the payload refers have %d bytes, %d are allowed"
			return &handlers.Failure{
				Code:    string(apierror.InputTooLarge),
				Message: fmt.Sprintf(tooLarge, parent.OutputBytes, jobevent.MaxParentBytes),
			}
		}
		if parent.Attempt == 0 { // its job has not completed
			continue
		}
		output, err := a.sealer.Open(sealing.OfAttempt(parent.JobID, parent.Attempt, sealing.Output), parent.Output)
		if err != nil {
			return cannotBeRead("output of "+parent.Name, err)
		}
		if output == nil {
			output = json.RawMessage("null")
		}
		parent.Output, outputs[parent.Name] = output, jsontext.Value(output)
	}
	filled, err := jobspec.FillInOutputs(opened.Run.Payload, func(name string) (jsontext.Value, bool) {
		output, has := outputs[name]
		return output, has
	})
	if wrong := (*jobspec.OutputError)(nil); errors.As(err, &wrong) {
		return &handlers.Failure{Code: string(wrong.Code), Message: wrong.Message}
	}
	if err != nil {
		return &handlers.Failure{Code: string(apierror.InvalidPayload), Message: "the payload is not JSON"}
	}
	opened.Run.Payload = filled
	return nil
}

// SealCheckpoint returns a checkpoint as it is stored, or the failure of one that cannot be stored.
func (a *Attempt) SealCheckpoint(data json.RawMessage) (json.RawMessage, error) {
	switch {
	case len(data) > durable.MaxBytes:
		return nil, durable.CheckpointTooLarge(len(data))
	case !isSound(data):
		return nil, &durable.Failure{
			Code:    string(apierror.InvalidOutput),
			Message: "the checkpoint is not JSON in UTF-8, each name once in its object and not too deep",
		}
	}
	return a.sealer.Seal(sealing.OfJob(a.Run.JobID, sealing.Checkpoint), data), nil
}

// sealMessage seals a failure's message, which it cuts first: later code cannot cut a sealed one.
func (a *Attempt) sealMessage(text string) string {
	if a.sealer == nil {
		return text
	}
	return a.sealer.SealText(sealing.OfJob(a.Run.JobID, sealing.Message), jobevent.CleanMessage(text))
}

// ForLog returns a text of the handler as the worker's own log may contain it.
func (a *Attempt) ForLog(text string) string {
	if a.sealer != nil {
		return "[sealed]"
	}
	return text
}

// reported is a progress as heartbeats contain it. It is sealed once: sealed anew, each heartbeat would differ from the
// last one.
type reported struct{ of, sealed *jobevent.Progress }

// ReportedProgress returns the attempt's progress for a heartbeat. The caller holds the pool's mutex.
func (a *Attempt) ReportedProgress() *jobevent.Progress {
	p := a.Progress.Load()
	if p == nil || a.sealer == nil {
		return p
	}
	if a.reported.of != p {
		a.reported = reported{p, &jobevent.Progress{
			Percent: p.Percent, Message: a.sealer.SealText(a.spot(sealing.Progress), p.Message),
		}}
	}
	return a.reported.sealed
}
