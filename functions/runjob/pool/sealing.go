package pool

import (
	"github.com/jobweaver/jobweaver/functions/runjob/handlers"
	"github.com/jobweaver/jobweaver/shared/apierror"
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

// Open returns the run order with its payload opened. The failure to open it is retryable: this worker may get the key
// later.
func (a *Attempt) Open() (jobevent.Run, *handlers.Failure) {
	run := a.Run
	payload, err := a.sealer.Open(sealing.OfJob(run.JobID, sealing.Payload), run.Payload)
	if err != nil {
		return run, &handlers.Failure{
			Code: string(apierror.PayloadSealed), Message: "the payload cannot be read: " + err.Error(), Retryable: true,
		}
	}
	run.Payload = payload
	return run, nil
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
