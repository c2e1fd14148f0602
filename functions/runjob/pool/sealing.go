package pool

import (
	"encoding/json"

	"github.com/jobweaver/jobweaver/functions/runjob/handlers"
	"github.com/jobweaver/jobweaver/shared/apierror"
	"github.com/jobweaver/jobweaver/shared/durable"
	"github.com/jobweaver/jobweaver/shared/jobevent"
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

// Open returns the run order with its payload opened, and the opened checkpoint. The failure to open them is retryable:
// this worker may get the key later.
func (a *Attempt) Open() (run jobevent.Run, checkpoint json.RawMessage, failure *handlers.Failure) {
	run = a.Run
	what := "payload"
	payload, err := a.sealer.Open(sealing.OfJob(run.JobID, sealing.Payload), run.Payload)
	if err == nil && a.Checkpoint != nil {
		a.HasCheckpoint.Store(true)
		what = "checkpoint"
		checkpoint, err = a.sealer.Open(sealing.OfJob(run.JobID, sealing.Checkpoint), a.Checkpoint)
	}
	if err != nil {
		return run, nil, &handlers.Failure{
			Code: string(apierror.PayloadSealed), Message: "the " + what + " cannot be read: " + err.Error(), Retryable: true,
		}
	}
	run.Payload = payload
	return run, checkpoint, nil
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
