package operationstore_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"golang.org/x/sync/errgroup"

	"github.com/jobweaver/jobweaver/shared/apibody"
	"github.com/jobweaver/jobweaver/shared/apidb"
	"github.com/jobweaver/jobweaver/shared/apidb/apidbtest"
	"github.com/jobweaver/jobweaver/shared/apidb/commandstore"
	"github.com/jobweaver/jobweaver/shared/apidb/operationstore"
	"github.com/jobweaver/jobweaver/shared/apidb/statusstore"
	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/jobstate"
)

// operate stores an operation.
func (h *fixture) operate(t *testing.T, request apibody.Operation) uuid.UUID {
	t.Helper()
	op, _, err := h.Operations.InsertOperation(t.Context(), operationstore.NewOperation{ID: uuid.Must(uuid.NewV7()), Request: request, By: "me", Whose: apidb.Everyone})
	if err != nil {
		t.Fatal(err)
	}
	return op.ID
}

func (h *fixture) operation(t *testing.T, id uuid.UUID) operationstore.Operation {
	t.Helper()
	op, err := h.Operations.Operation(t.Context(), apidb.Everyone, id)
	if err != nil {
		t.Fatal(err)
	}
	return op
}

// pieces works on an operation until nothing can be done at once.
func (h *fixture) pieces(t *testing.T, id uuid.UUID) (commands []commandstore.Command) {
	t.Helper()
	for more := true; more; {
		var kept []commandstore.Command
		var err error
		if kept, more, err = h.Operations.Operate(t.Context(), id); err != nil {
			t.Fatal(err)
		}
		commands = append(commands, kept...)
	}
	return commands
}

// answer answers commands as the scheduler does: each is applied unless refuse names it, and answered twice.
func (h *fixture) answer(t *testing.T, commands []commandstore.Command, refuse func(i int) string) {
	t.Helper()
	after := map[string]jobstate.Status{
		"cancel": jobstate.Cancelled, "retry": jobstate.Pending, "reschedule": jobstate.Scheduled,
	}
	var words []statusstore.PublishedStatus
	var gone []statusstore.Gone
	for i, c := range commands {
		reason := ""
		if refuse != nil {
			reason = refuse(i)
		}
		if c.Command == "delete" && reason == "" {
			gone = append(gone, statusstore.Gone{JobID: c.JobID, Version: 100})
			continue
		}
		status := after[c.Command]
		if reason != "" {
			status = jobstate.Completed
		}
		words = append(words, apidbtest.Status(c.JobID, int64(10+c.Number), status, func(s *jobevent.Status) {
			s.LastCommand = &jobevent.CommandResult{Number: c.Number, Command: c.Command, Applied: reason == "", Reason: reason}
		}))
	}
	for range 2 {
		h.Apply(t, words...)
		if _, err := h.Statuses.ForgetJobs(t.Context(), gone); err != nil {
			t.Fatal(err)
		}
	}
}

// jobs inserts n jobs, and returns their ids in order.
func (h *fixture) jobs(t *testing.T, n int, status jobstate.Status, more string) (ids []uuid.UUID) {
	t.Helper()
	if more != "" {
		more = ", " + more
	}
	h.Conn(t, func(ctx context.Context, c *pgx.Conn) error {
		rows, err := c.Query(ctx, `with put as (
			insert into jobs (job_id, job_type, queue, payload, spec, trace_id, status, version, snapshot`+
			map[bool]string{true: ", owner_id, ordering_key, order_number, tags"}[more != ""]+`)
			select uuidv7(), 'X', 'default', '{}', '{"priority":0,"maxRetryCount":3,"timeoutMs":1000}', gen_random_uuid(), $1, 1, '{}'`+more+` from generate_series(1, $2::int) n
			returning job_id) select job_id from put order by job_id`, string(status), n)
		if err != nil {
			return err
		}
		ids, err = pgx.CollectRows(rows, pgx.RowTo[uuid.UUID])
		return err
	})
	return ids
}

func idsOf(commands []commandstore.Command) (ids []uuid.UUID) {
	for _, c := range commands {
		ids = append(ids, c.JobID)
	}
	return ids
}

func TestAnOperationAsksEachJobOfItsListOnceAndReportsWhyNotTheOthers(t *testing.T) {
	t.Parallel()
	h := open(t)
	failed := h.jobs(t, 3, jobstate.Failed, "")
	running := h.jobs(t, 1, jobstate.Running, "")
	busy := h.jobs(t, 1, jobstate.Failed, "")
	if _, err := h.Commands.KeepCommand(t.Context(), nil, apidb.Everyone, busy[0], "delete", "me"); err != nil {
		t.Fatal(err)
	}
	unknown := uuid.Must(uuid.NewV7())
	list := slices.Concat([]uuid.UUID{unknown}, busy, running, failed)
	id := h.operate(t, apibody.Operation{Command: "retry", JobIDs: list})
	commands := h.pieces(t, id)
	if !slices.Equal(idsOf(commands), failed) || commands[0].Number != 1 || commands[0].By != "me" || commands[0].TraceID == uuid.Nil {
		t.Fatalf("kept %+v", commands)
	}
	if op := h.operation(t, id); op.Ended() || !op.Walked || op.Asked != 3 || op.Skipped != 3 || op.Matched != 6 || op.Listed != 6 {
		t.Errorf("before the answers: %+v", op)
	}
	h.answer(t, commands, func(i int) string { return map[int]string{1: "the job is COMPLETED"}[i] })
	h.pieces(t, id)
	op := h.operation(t, id)
	want := map[string]int64{
		"the job is RUNNING": 1, "the job is COMPLETED": 1, "there is no such job": 1, "the job's command delete is not answered yet": 1,
	}
	if op.Status != operationstore.OperationCompleted || !op.Ended() || op.Applied != 2 || op.Refused != 1 || !maps.Equal(op.Reasons, want) {
		t.Errorf("at the end: %+v", op)
	}
	skips := map[uuid.UUID]string{}
	for _, skip := range op.Skips {
		skips[skip.JobID] = skip.Reason
	}
	if !maps.Equal(skips, map[uuid.UUID]string{
		unknown: "there is no such job", running[0]: "the job is RUNNING", failed[1]: "the job is COMPLETED",
		busy[0]: "the job's command delete is not answered yet",
	}) {
		t.Errorf("skipped %v", skips)
	}
	if left := h.pieces(t, id); len(left) != 0 {
		t.Errorf("after the end it keeps %v", left)
	}
}

var statuses = []jobstate.Status{
	jobstate.Scheduled, jobstate.Pending, jobstate.Queued, jobstate.Running, jobstate.Waiting, jobstate.Retrying,
	jobstate.Completed, jobstate.Failed, jobstate.Cancelled,
}

func TestAFilterChoosesWhatTheListOfJobsShows(t *testing.T) {
	t.Parallel()
	h := open(t)
	byStatus := map[jobstate.Status][]uuid.UUID{}
	for _, status := range statuses {
		byStatus[status] = append(h.jobs(t, 2, status, ""), h.jobs(t, 1, status, "'acme', 'key', n, array['a', 'b']")...)
	}
	middle := time.Now()
	h.Exec(t, "update jobs set created_at = $1::timestamptz + interval '1 s', updated_at = $1::timestamptz + interval '1 s' where owner_id = 'acme'", middle)
	of := func(at int, statuses ...jobstate.Status) (ids []uuid.UUID) {
		for _, status := range statuses {
			if at < 0 {
				ids = append(ids, byStatus[status]...)
			} else {
				ids = append(ids, byStatus[status][at])
			}
		}
		return ids
	}
	unended := []jobstate.Status{
		jobstate.Scheduled, jobstate.Pending, jobstate.Queued, jobstate.Running, jobstate.Waiting, jobstate.Retrying,
	}
	for name, c := range map[string]struct {
		command string
		filter  apibody.Filter
		want    []uuid.UUID
	}{
		"all":                 {"cancel", apibody.Filter{All: true}, of(-1, unended...)},
		"all dead ones":       {"retry", apibody.Filter{All: true}, of(-1, jobstate.Failed, jobstate.Cancelled)},
		"all that have ended": {"delete", apibody.Filter{All: true}, of(-1, jobstate.Completed, jobstate.Failed, jobstate.Cancelled)},
		"all that wait":       {"reschedule", apibody.Filter{All: true}, of(-1, jobstate.Scheduled, jobstate.Pending, jobstate.Retrying)},
		"a state":             {"cancel", apibody.Filter{Status: []jobstate.Status{jobstate.Running}}, of(-1, jobstate.Running)},
		"completed ones":      {"delete", apibody.Filter{Status: []jobstate.Status{jobstate.Completed}}, of(-1, jobstate.Completed)},
		"an owner":            {"cancel", apibody.Filter{OwnerID: "acme"}, of(2, unended...)},
		"an order":            {"delete", apibody.Filter{OrderingKey: "key"}, of(2, jobstate.Completed, jobstate.Failed, jobstate.Cancelled)},
		"a tag":               {"retry", apibody.Filter{Tag: "b"}, of(2, jobstate.Failed, jobstate.Cancelled)},
		"a type":              {"retry", apibody.Filter{JobType: "Y"}, nil},
		"a queue":             {"retry", apibody.Filter{Queue: "other"}, nil},
		"later ones":          {"retry", apibody.Filter{Since: &middle}, of(2, jobstate.Failed, jobstate.Cancelled)},
		"ended later":         {"delete", apibody.Filter{EndedSince: &middle}, of(2, jobstate.Completed, jobstate.Failed, jobstate.Cancelled)},
		"ended before":        {"retry", apibody.Filter{EndedUntil: &middle}, append(of(0, jobstate.Failed, jobstate.Cancelled), of(1, jobstate.Failed, jobstate.Cancelled)...)},
		"ended, and in a state of jobs that have not": {
			"cancel", apibody.Filter{EndedSince: &middle, Status: []jobstate.Status{jobstate.Running}}, nil,
		},
		"earlier ones": {"delete", apibody.Filter{Until: &middle, Status: []jobstate.Status{jobstate.Completed}},
			of(-1, jobstate.Completed)[:2]},
	} {
		request := apibody.Operation{Command: c.command, Filter: &c.filter}
		id := h.operate(t, request)
		h.Exec(t, "update operations set created_at = created_at + interval '10 s' where operation_id = $1", id)
		got := idsOf(h.pieces(t, id))
		slices.SortFunc(c.want, func(a, b uuid.UUID) int { return slices.Compare(a[:], b[:]) })
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: got %v, want %v", name, got, c.want)
		}
		h.Exec(t, "delete from commands")
		h.pieces(t, id)
		if op := h.operation(t, id); op.Status != operationstore.OperationCompleted || op.Refused != int64(len(c.want)) {
			t.Errorf("%s: without its commands it is %+v", name, op)
		}
	}
}

func TestAStateThatDoesNotAllowTheCommandIsMatchedAndSkipped(t *testing.T) {
	t.Parallel()
	h := open(t)
	h.jobs(t, 1200, jobstate.Running, "")
	id := h.operate(t, apibody.Operation{Command: "retry", Filter: &apibody.Filter{Status: []jobstate.Status{jobstate.Running}}})
	if kept := h.pieces(t, id); len(kept) != 0 {
		t.Errorf("kept %d", len(kept))
	}
	op := h.operation(t, id)
	if !op.Ended() || op.Skipped != 1200 || op.Reasons["the job is RUNNING"] != 1200 || len(op.Skips) != operationstore.MaxSkips {
		t.Errorf("%+v", op)
	}
}

func TestJobsThatCameLaterAreNotMeant(t *testing.T) {
	t.Parallel()
	h := open(t)
	want := h.jobs(t, 3, jobstate.Failed, "")
	id := h.operate(t, apibody.Operation{Command: "retry", Filter: &apibody.Filter{All: true}})
	h.jobs(t, 3, jobstate.Failed, "")
	if got := idsOf(h.pieces(t, id)); !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestOnlySomeCommandsAreUnansweredAtATime(t *testing.T) {
	t.Parallel()
	h := open(t)
	all := h.jobs(t, 5_300, jobstate.Pending, "")
	for name, request := range map[string]apibody.Operation{
		"a filter": {Command: "reschedule", Filter: &apibody.Filter{All: true}},
		"a list":   {Command: "cancel", JobIDs: all},
	} {
		id := h.operate(t, request)
		var asked []uuid.UUID
		for {
			kept := h.pieces(t, id)
			if len(kept) == 0 {
				break
			}
			if len(kept) > operationstore.MaxUnanswered {
				t.Fatalf("%s: %d at once", name, len(kept))
			}
			asked = append(asked, idsOf(kept)...)
			if again := h.pieces(t, id); len(kept) == operationstore.MaxUnanswered && len(again) != 0 {
				t.Errorf("%s: and %d more", name, len(again))
			}
			h.answer(t, kept, nil)
		}
		if op := h.operation(t, id); !slices.Equal(asked, all) || op.Status != operationstore.OperationCompleted || op.Applied != int64(len(all)) {
			t.Errorf("%s: %d were asked, %+v", name, len(asked), op)
		}
		h.Exec(t, "update jobs set status = 'PENDING'")
	}
}

func TestAnAbortedOperationAsksNoMoreJobsAndWaitsForItsAnswers(t *testing.T) {
	t.Parallel()
	h := open(t)
	h.jobs(t, 3_000, jobstate.Failed, "")
	id := h.operate(t, apibody.Operation{Command: "delete", Filter: &apibody.Filter{All: true}})
	kept := h.pieces(t, id)
	for range 2 {
		if op, err := h.Operations.AbortOperation(t.Context(), nil, apidb.Everyone, id); err != nil || op.Status != operationstore.OperationAborting || op.Ended() {
			t.Errorf("aborted: %+v, %v", op, err)
		}
	}
	h.answer(t, kept[:1999], nil)
	if more := h.pieces(t, id); len(more) != 0 || h.operation(t, id).Ended() {
		t.Errorf("it goes on with %d", len(more))
	}
	h.answer(t, kept[1999:], nil)
	h.pieces(t, id)
	if op := h.operation(t, id); op.Status != operationstore.OperationAborted || op.Asked != 2_000 || op.Applied != 2_000 || op.Walked {
		t.Errorf("at the end: %+v", op)
	}
	if n := apidbtest.One[int](t, h, "select count(*) from jobs"); n != 1_000 {
		t.Errorf("%d jobs are left", n)
	}
	if op, err := h.Operations.AbortOperation(t.Context(), nil, apidb.Everyone, id); err != nil || op.Status != operationstore.OperationAborted {
		t.Errorf("again: %+v, %v", op, err)
	}
}

// Two processes work on the same operations while answers arrive and other clients send commands. Each operation sends
// each job one command.
func TestTwoAtOnceAskEachJobOnce(t *testing.T) {
	t.Parallel()
	h := open(t)
	all := h.jobs(t, 6_000, jobstate.Pending, "")
	ops := []uuid.UUID{
		h.operate(t, apibody.Operation{Command: "cancel", Filter: &apibody.Filter{All: true}}),
		h.operate(t, apibody.Operation{Command: "reschedule", JobIDs: all[:3_000]}),
	}
	kept := make(chan []commandstore.Command, 1000)
	work, done := context.WithCancel(t.Context())
	defer done()
	var g errgroup.Group
	for range 3 {
		g.Go(func() error {
			for work.Err() == nil {
				for _, id := range ops {
					commands, _, err := h.Operations.Operate(t.Context(), id)
					if err != nil {
						return err
					}
					kept <- commands
				}
			}
			return nil
		})
	}
	g.Go(func() error {
		for i := range 50 {
			var refused *commandstore.RefusedError
			if _, err := h.Commands.KeepCommand(t.Context(), nil, apidb.Everyone, all[i*100], "cancel", "me"); err != nil && !errors.As(err, &refused) {
				return err
			}
		}
		return nil
	})
	asked := map[string]int{}
	for ended := 0; ended < len(ops); {
		commands := <-kept
		for _, c := range commands {
			asked[fmt.Sprint(c.Command, c.JobID)]++
		}
		h.answer(t, commands, nil)
		found, err := h.Operations.EndedOperations(t.Context(), ops)
		if err != nil {
			t.Fatal(err)
		}
		ended = len(found)
	}
	done()
	for len(kept) > 0 {
		<-kept
	}
	go func() {
		for range kept { // empties the channel, so that no send blocks
		}
	}()
	if err := g.Wait(); err != nil {
		t.Fatal(err)
	}
	close(kept)
	for what, times := range asked {
		if times != 1 {
			t.Errorf("%s was asked %d times", what, times)
		}
	}
	for i, id := range ops {
		if op := h.operation(t, id); op.Status != operationstore.OperationCompleted || op.Asked+op.Skipped != []int64{6_000, 3_000}[i] || op.Applied != op.Asked {
			t.Errorf("%+v", op)
		}
	}
}

func TestTheSameKeyIsTheSameOperationOrAConflict(t *testing.T) {
	t.Parallel()
	h := open(t)
	insert := func(hash string) (operationstore.Operation, bool, error) {
		return h.Operations.InsertOperation(t.Context(), operationstore.NewOperation{ID: uuid.Must(uuid.NewV7()), RequestHash: []byte(hash), By: "me",
			Request: apibody.Operation{Command: "cancel", Filter: &apibody.Filter{All: true}, IdempotencyKey: "k"}})
	}
	ids := make([]uuid.UUID, 20)
	var g errgroup.Group
	for i := range ids {
		g.Go(func() error {
			op, _, err := insert("a")
			ids[i] = op.ID
			return err
		})
	}
	if err := g.Wait(); err != nil {
		t.Fatal(err)
	}
	if different := slices.Compact(slices.Clone(ids)); len(different) != 1 {
		t.Errorf("operations %v", different)
	}
	if op, replayed, err := insert("a"); err != nil || !replayed || op.ID != ids[0] {
		t.Errorf("again: %+v, %v, %v", op, replayed, err)
	}
	if _, _, err := insert("b"); !errors.Is(err, apidb.ErrConflict) {
		t.Errorf("another request: %v", err)
	}
}

func TestOldOperationsAreForgottenAndOnlyThose(t *testing.T) {
	t.Parallel()
	h := open(t)
	h.jobs(t, 1, jobstate.Running, "")
	var ids []uuid.UUID
	for range 3 {
		ids = append(ids, h.operate(t, apibody.Operation{Command: "retry", JobIDs: []uuid.UUID{uuid.Must(uuid.NewV7())}}))
	}
	for _, id := range ids[:2] {
		h.pieces(t, id)
	}
	h.Exec(t, "alter table operation_skips drop constraint operation_skips_operation_id_fkey")
	h.Exec(t, "update operations set operation_id = uuidv7(-interval '32 days') where operation_id = any ($1)", []uuid.UUID{ids[0], ids[2]})
	h.Exec(t, "update operations set finished_at = finished_at - interval '31 days' where operation_id < $1", ids[1])
	if err := h.Operations.ForgetOperations(t.Context(), 30*24*time.Hour); err != nil {
		t.Fatal(err)
	}
	if left := apidbtest.One[string](t, h, "select string_agg(status, ' ' order by status) from operations"); left != "COMPLETED RUNNING" {
		t.Errorf("left are %s", left)
	}
}

// The time in the ids is a gateway's, which may be wrong by hours.
func TestAnOperationFindsAllJobsAcceptedBeforeItWhateverTimeTheirIDsHave(t *testing.T) {
	t.Parallel()
	at := func(ago time.Duration) *time.Time { t := time.Now().Add(-ago); return &t }
	filters := map[string]*apibody.Filter{
		"all":             {},
		"of some time":    {Since: at(10 * time.Minute), Until: at(-10 * time.Minute)},
		"of some end":     {EndedSince: at(10 * time.Minute), EndedUntil: at(-10 * time.Minute)},
		"of an owner":     {OwnerID: "acme"},
		"failed ones":     {Status: []jobstate.Status{jobstate.Failed}},
		"of an order key": {OrderingKey: "k"},
	}
	for name, filter := range filters {
		for _, whose := range []apidb.Owner{apidb.Everyone, apidb.OwnerOf("acme")} {
			t.Run(fmt.Sprint(name, whose), func(t *testing.T) {
				t.Parallel()
				h := open(t)
				for _, off := range []string{"1 hour", "0", "-1 hour"} {
					h.Exec(t, `insert into jobs (job_id, job_type, queue, payload, spec, trace_id, status,
						version, snapshot, owner_id, ordering_key, order_number, tags)
						values (uuidv7($1::interval), 'X', 'default', '{}', '{"priority":0,"maxRetryCount":3,"timeoutMs":1000}', gen_random_uuid(), 'FAILED', 1, '{}', 'acme', 'k', 1, '{}')`, off)
				}
				asked := apibody.Operation{Command: jobevent.CommandDelete, Filter: filter}
				op, _, err := h.Operations.InsertOperation(t.Context(), operationstore.NewOperation{ID: h.NewID(), Request: asked, By: "me", Whose: whose})
				if err != nil {
					t.Fatal(err)
				}
				h.jobs(t, 1, jobstate.Failed, "'acme', 'k', 2, '{}'") // accepted later
				if commands := h.pieces(t, op.ID); len(commands) != 3 {
					t.Fatalf("asked for %d of 3 jobs", len(commands))
				}
			})
		}
	}
}

func TestAnOperationTakesThePlaceOfAWakeThatIsNotAnsweredYet(t *testing.T) {
	t.Parallel()
	h := open(t)
	for _, command := range []string{"cancel", "reschedule"} {
		ids := h.jobs(t, 2, jobstate.Scheduled, "")
		h.Exec(t, `with numbered as (update jobs set command_seq = 1 where job_id = any ($1) returning job_id)
			insert into commands (job_id, number, command, by_whom, created_at, run_at)
			select job_id, 1, 'reschedule', case job_id when $2 then 'wait' else 'me' end, now() - interval '1 h', now() from numbered`,
			ids, ids[0])
		request := apibody.Operation{Command: command, JobIDs: ids}
		if command == "reschedule" {
			at := time.Now().Add(time.Hour).Truncate(time.Microsecond)
			request.When.RunAt = &at
		}
		op := h.operate(t, request)
		commands := h.pieces(t, op)
		if len(commands) != 1 || commands[0].JobID != ids[0] || commands[0].Number != 2 || commands[0].Command != command {
			t.Fatalf("%+v", commands)
		}
		if fresh := apidbtest.One[bool](t, h, `select created_at > now() - interval '1 min' and operation_id = $2 and by_whom = 'me'
			from commands where job_id = $1`, ids[0], op); !fresh {
			t.Error("the command has values of the wake")
		}
		h.answer(t, commands, nil)
		h.pieces(t, op)
		if o := h.operation(t, op); o.Applied != 1 || o.Skipped != 1 || o.Status != operationstore.OperationCompleted {
			t.Errorf("%+v", o)
		}
	}
}
