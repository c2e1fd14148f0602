package runjob

import (
	"github.com/jobweaver/jobweaver/functions/runjob/handlers"
	"github.com/jobweaver/jobweaver/shared/apierror"
	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/sealing"
)

// sealWith has all that the attempt's handler says sealed. A nil sealer changes nothing.
func (a *attempt) sealWith(sealer *sealing.Sealer) {
	if a.sealer = sealer; sealer != nil {
		a.log.seal = func(text string) string { return sealer.SealText(a.spot(sealing.LogLine), text) }
	}
}

func (a *attempt) spot(field sealing.Field) sealing.Place {
	return sealing.OfAttempt(a.run.JobID, a.run.Attempt, field)
}

// open is the order with its payload as the handler is to have it. One that does not open is worth another attempt: its
// key may be on its way to this worker.
func (a *attempt) open() (jobevent.Run, *handlers.Failure) {
	run := a.run
	payload, err := a.sealer.Open(sealing.OfJob(run.JobID, sealing.Payload), run.Payload)
	if err != nil {
		return run, &handlers.Failure{
			Code: string(apierror.PayloadSealed), Message: "the payload cannot be read: " + err.Error(), Retryable: true,
		}
	}
	run.Payload = payload
	return run, nil
}

// sealMessage makes a failure's message one that nobody cuts later.
func (a *attempt) sealMessage(text string) string {
	if a.sealer == nil {
		return text
	}
	return a.sealer.SealText(sealing.OfJob(a.run.JobID, sealing.Message), jobevent.CleanMessage(text))
}

// forLog is a text of the handler's, as the worker's own log may have it.
func (a *attempt) forLog(text string) string {
	if a.sealer != nil {
		return "[sealed]"
	}
	return text
}

// told is a progress as beats have it: sealed once, or each beat would look like news.
type told struct{ of, sealed *jobevent.Progress }

// tell is the attempt's progress for a beat. The caller holds the pool's mutex.
func (a *attempt) tell() *jobevent.Progress {
	p := a.progress.Load()
	if p == nil || a.sealer == nil {
		return p
	}
	if a.told.of != p {
		a.told = told{p, &jobevent.Progress{
			Percent: p.Percent, Message: a.sealer.SealText(a.spot(sealing.Progress), p.Message),
		}}
	}
	return a.told.sealed
}
