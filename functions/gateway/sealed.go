package gateway

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"github.com/jobweaver/jobweaver/shared/apidb/jobstore"
	"github.com/jobweaver/jobweaver/shared/apidb/logstore"
	"github.com/jobweaver/jobweaver/shared/apidb/schedulestore"
	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/jobspec"
	"github.com/jobweaver/jobweaver/shared/jobview"
	"github.com/jobweaver/jobweaver/shared/sealing"
	"github.com/jobweaver/jobweaver/shared/telemetry"
)

// sealJob has a new job's payload kept sealed. The hash of its request is of the plain one.
func (f *Function) sealJob(job *jobstore.NewJob) {
	job.Request.Payload = f.sealer.Seal(sealing.OfJob(job.JobID, sealing.Payload), job.Request.Payload)
}

// sealSchedule has a schedule's job kept sealed. Its owner and name are known by now.
func (f *Function) sealSchedule(asked *jobspec.Schedule) {
	asked.JobJSON = f.sealer.Seal(sealing.OfSchedule(asked.Name, asked.Job.OwnerID), asked.JobJSON)
}

// sealCallback is what is kept of a callback, as a worker would have said it.
func (f *Function) sealCallback(said jobspec.Callback) jobspec.Callback {
	if f.sealer == nil {
		return said
	}
	said.Output = f.sealer.Seal(sealing.OfAttempt(said.JobID, said.Attempt, sealing.Output), said.Output)
	said.Message = f.sealer.SealText(sealing.OfJob(said.JobID, sealing.Message), jobevent.CleanMessage(said.Message))
	said.Progress.Message = f.sealer.SealText(
		sealing.OfAttempt(said.JobID, said.Attempt, sealing.Progress), said.Progress.Message)
	return said
}

// openSchedule shows a schedule as it was asked for; null is the job of one that does not open.
func (f *Function) openSchedule(ctx context.Context, s schedulestore.Schedule) scheduleBody {
	err := s.Open(f.sealer)
	body := newScheduleBody(s)
	if err != nil {
		body.Sealed = []string{"job"}
		f.grumbleSealed(ctx, body.Sealed)
	}
	return body
}

func (f *Function) openJob(ctx context.Context, job *jobstore.Job) {
	jobview.Open(job, f.sealer)
	if len(job.Sealed) > 0 {
		f.grumbleSealed(ctx, job.Sealed)
	}
}

// openFull is openJob of all that is shown of a job by itself.
func (f *Function) openFull(ctx context.Context, job *jobstore.Job, lines []logstore.Line) {
	f.openJob(ctx, job)
	jobview.OpenHistory(job, f.sealer)
	job.Sealed = append(job.Sealed, f.openLines(ctx, job.JobID, lines)...)
}

// openLines gives the name of what cannot be shown whole.
func (f *Function) openLines(ctx context.Context, id uuid.UUID, lines []logstore.Line) (sealed []string) {
	if !jobview.OpenLines(f.sealer, id, lines) {
		sealed = []string{"logs"}
		f.grumbleSealed(ctx, sealed)
	}
	return sealed
}

// grumbleSealed tells who runs the gateway, now and then.
func (f *Function) grumbleSealed(ctx context.Context, members []string) {
	if f.grumble.now() {
		telemetry.Logger(ctx).Warn("cannot open what is sealed: with another key, or altered", "members", members)
	}
}

// sometimes says yes at most once a second: while a server is away, each request fails in the same way.
type sometimes struct{ last atomic.Int64 }

func (s *sometimes) now() bool {
	last, now := s.last.Load(), time.Now().UnixNano()
	return now-last >= int64(time.Second) && s.last.CompareAndSwap(last, now)
}
