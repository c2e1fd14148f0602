package interplay

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/jobweaver/jobweaver/functions/retention"
	"github.com/jobweaver/jobweaver/shared/apierror"
	"github.com/jobweaver/jobweaver/shared/funchost"
	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/retry"
	"github.com/jobweaver/jobweaver/shared/schedulerdb"
	"github.com/jobweaver/jobweaver/shared/schedulerdb/hosted"
)

// retainFor is how long the process of retention keeps ended jobs. A setting has to be a day at least, which no program
// lasts, so the process makes its own passes.
const retainFor = 2 * time.Second

// retainApart makes the passes of retention every half second, with a limit of seconds.
func retainApart(ctx context.Context, env *funchost.Env) (funchost.Function, error) {
	store, err := hosted.Open(ctx, env)
	if err != nil {
		return funchost.Function{}, err
	}
	keep := schedulerdb.Retention{Completed: retainFor, Failed: retainFor, Cancelled: retainFor, Forget: jobevent.RecordsGone}
	var after uuid.UUID
	return funchost.Function{Name: retention.Name, Ready: store.Ping, Tick: func(ctx context.Context) ([]jobevent.Item, time.Duration, error) {
		effects, done, err := store.Retire(ctx, keep, after, 1000)
		if err != nil {
			return nil, 0, err
		}
		events, err := effects.Events(retention.Name)
		if after = done.Last; done.More {
			return events, 0, err
		}
		after = uuid.Nil
		return events, 500 * time.Millisecond, err
	}}, nil
}

// Retired is a job that retention has deleted.
type Retired struct {
	Job       string    `json:"job"`
	Owner     string    `json:"owner"`
	Status    string    `json:"status"`
	EndedAt   time.Time `json:"endedAt"`
	DeletedAt time.Time `json:"deletedAt"`
}

// retain runs retention for a while, and waits until the API has deleted all that the scheduler has deleted.
func (i *Installation) retain(ctx context.Context, d time.Duration) (gone []Retired, err error) {
	began := time.Now()
	if err := i.launchApart(retention.Name); err != nil {
		return nil, err
	}
	s := i.seconds[retention.Name]
	delete(i.seconds, retention.Name)
	retry.Pause(ctx, time.Second+d) // it takes a moment to start
	err = s.cmd.Process.Signal(syscall.SIGTERM)
	if errors.Is(err, os.ErrProcessDone) {
		err = fmt.Errorf("retention has ended by itself: %s", s.cmd.ProcessState)
	}
	<-s.ended
	if err != nil {
		return nil, err
	}
	if err := i.projected(ctx); err != nil {
		return nil, err
	}
	rows, err := i.scheduler.Query(ctx, `select job_id::text as job, coalesce(owner_id, '') as owner, status::text as status,
			finished_at as ended_at, deleted_at
		from all_jobs where deleted_at >= $1`, began)
	if err != nil {
		return nil, fmt.Errorf("read what the scheduler has deleted: %w", err)
	}
	if gone, err = pgx.CollectRows(rows, pgx.RowToStructByName[Retired]); err != nil {
		return nil, fmt.Errorf("read what the scheduler has deleted: %w", err)
	}
	return gone, nil
}

// projected waits until the API shows all that the scheduler has done until now.
func (i *Installation) projected(ctx context.Context) error {
	ids, versions, err := i.versions(ctx, "true")
	if err != nil {
		return err
	}
	for began := time.Now(); ; {
		behind, err := i.behind(ctx, ids, versions)
		if err != nil || len(behind) == 0 {
			return err
		}
		if time.Since(began) > answerWithin || !retry.Pause(ctx, 20*time.Millisecond) {
			return fmt.Errorf("the API does not show what the scheduler has done with %v", behind)
		}
	}
}

// versions returns the versions of jobs in the scheduler's database. Those of deleted jobs are negative.
func (i *Installation) versions(ctx context.Context, which string, args ...any) (ids []string, versions []int64, err error) {
	err = i.scheduler.QueryRow(ctx, `select coalesce(array_agg(job_id::text), '{}'),
			coalesce(array_agg(case when deleted_at is null then version else -version end), '{}')
		from (select job_id, owner_id, version, deleted_at from all_jobs
			union all select job_id, owner_id, version, null from members) as known where `+which, args...).Scan(&ids, &versions)
	if wrong := (*pgconn.PgError)(nil); errors.As(err, &wrong) && strings.HasPrefix(wrong.Code, "42") {
		panic(wrong) // a wrong statement would only look like jobs that lag
	}
	if err != nil {
		return nil, nil, fmt.Errorf("read the scheduler's jobs: %w", err)
	}
	return ids, versions, nil
}

// behind returns those of the jobs of which the API has an older version than these, or a command that is not answered.
func (i *Installation) behind(ctx context.Context, ids []string, versions []int64) (list []string, err error) {
	err = i.api.QueryRow(ctx, `select array_agg(jobs.job_id::text)
		from rows from (unnest($1::text[]), unnest($2::bigint[])) as known (job_id, version)
		join jobs on jobs.job_id = known.job_id::uuid
		where jobs.version < known.version or jobs.version <= -known.version`, ids, versions).Scan(&list)
	if err != nil {
		return nil, fmt.Errorf("read the API's jobs: %w", err)
	}
	return list, nil
}

// lags reports whether the scheduler has yet to answer a command for a job of the program, or the API to show what it
// has done. A job that has ended in both then stays as it is.
func (x *run) lags(ctx context.Context) bool {
	var open bool
	err := x.api.QueryRow(ctx, `select exists (select from commands join jobs using (job_id) where owner_id = $1 or job_id::text = any ($2))`,
		x.owner, x.strangers()).Scan(&open)
	if err != nil || open {
		return true
	}
	ids, versions, err := x.versions(ctx, "owner_id = $1 or job_id::text = any ($2)", x.owner, x.strangers())
	if err != nil {
		return true
	}
	behind, err := x.behind(ctx, ids, versions)
	return err != nil || len(behind) > 0
}

// retentionDeletes stands for retention among the deletes of a job.
var retentionDeletes = &Asked{Method: "DELETE", Path: "retention"}

// gone returns since when it is sure that retention has deleted a job; zero: it has not.
func (f *facts) gone(id string) time.Time { return f.retired[id] }

// free reports whether all jobs that requests with a key had got before this one was sent were deleted by then, and no
// request with the key was under way beside it, for example in the same batch.
func (f *facts) free(one *Spec, has func(*Spec) bool) bool {
	found := false
	for _, name := range f.names {
		s := f.Specs[name]
		if !has(s) || s.Sent.After(one.At) {
			continue
		}
		gone := f.gone(s.ID)
		if s.Status == 0 || s.ID != "" && (gone.IsZero() || !gone.Before(one.Sent)) || s.At.After(one.Sent) {
			return false
		}
		found = found || s.ID != ""
	}
	return found
}

var retentionRules = []Rule{
	{
		"retained", "Jobs that have ended are deleted after `RETAIN_COMPLETED`", "docs/scheduling.md",
		func(f *facts, found func(_, _, _ string)) {
			for _, x := range f.Faults {
				for _, g := range x.Retired {
					if g.Owner != f.Owner {
						continue // another record has its commands
					}
					byCommand := slices.ContainsFunc(f.may(g.Job, "delete"), func(a *Asked) bool { return a != retentionDeletes })
					if age := g.DeletedAt.Sub(g.EndedAt); !terminal(g.Status) || age < retainFor && !byCommand {
						found(f.name(g.Job), fmt.Sprintf("only jobs go that ended %s ago", retainFor), fmt.Sprintf("%s for %s", g.Status, age))
					}
					for _, r := range f.runs[g.Job] {
						if r.Start.After(g.DeletedAt.Add(lateness)) {
							found(f.name(g.Job), "no start after it was deleted at "+clock(g.DeletedAt),
								fmt.Sprintf("attempt %d started at %s", r.Attempt, clock(r.Start)))
						}
					}
					if j := f.Jobs[g.Job]; j != nil {
						found(f.name(g.Job), "404: it was deleted at "+clock(g.DeletedAt), j.Status)
					}
				}
			}
		},
	},
	{
		"free policies", "When a job is deleted, by a command or by retention ([`RETAIN_COMPLETED`](settings.md), 7 days by default), its key is free.",
		"docs/submit-policies.md",
		func(f *facts, found func(_, _, _ string)) {
			for _, name := range f.names {
				s := f.Specs[name]
				if gone := f.gone(s.ID); s.By != "" && !gone.IsZero() && gone.Before(s.Sent) {
					found(name, "a job of its own, or of another request: that one was deleted at "+clock(gone), s.ID+", decided by "+s.By)
				}
			}
		},
	},
	{
		"free keys", "Once that job is deleted, the key is free.", "docs/scheduling.md",
		func(f *facts, found func(_, _, _ string)) {
			for _, name := range f.names {
				s := f.Specs[name]
				if gone := f.gone(s.ID); s.By == "" && s.Way != wayCall && !gone.IsZero() && gone.Before(s.Sent) {
					found(name, "a new job: the one that had its key was deleted at "+clock(gone), s.ID)
				}
				same := func(o *Spec) bool { return o != s && o.Job.Idem == s.Job.Idem && o.Owner == s.Owner }
				if s.Job.Idem != "" && s.Code == string(apierror.IdempotencyConflict) && f.free(s, same) {
					found(name, "a new job: retention has deleted all that had its key", s.Code)
				}
			}
		},
	},
	{
		"deleted ids", "The id of a deleted job is refused with 409 `API.JOB_DELETED`", "docs/scheduling.md",
		func(f *facts, found func(_, _, _ string)) {
			for _, name := range f.names {
				if s := f.Specs[name]; s.Deleted != "" && s.ID == s.Deleted {
					found(name+" "+s.ID, "it is refused: the job with its id was deleted before", fmt.Sprintf("answered %d", s.Status))
				}
			}
		},
	},
	{
		"free order", "Jobs with the same `orderingKey` (and owner) run one at a time", "docs/scheduling.md",
		func(f *facts, found func(_, _, _ string)) {
			for _, w := range f.Waits {
				if j := f.Jobs[w.Job]; j != nil && len(f.retired) > 0 && !f.behindOwn(j, w) {
					found(f.name(w.Job), "it waits behind no job that was deleted", fmt.Sprintf("blocked by %v at %s", w.By, clock(w.At)))
				}
				for _, b := range w.By {
					if gone := f.gone(b.ID); !gone.IsZero() && gone.Before(w.At) {
						found(f.name(w.Job), "it waits for no job that was deleted, as "+b.ID+" at "+clock(gone), fmt.Sprint(w.By))
					}
				}
			}
		},
	},
}
