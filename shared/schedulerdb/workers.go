package schedulerdb

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/jobweaver/jobweaver/shared/dispatch"
	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/schedulerdb/internal/gen"
)

// newRoom returns the room of the live workers. It reads what they run and their builds only if these matter.
func newRoom(
	ctx context.Context, q *gen.Queries, rows []gen.WorkersLiveRow, l *dispatch.Ledger,
) (*dispatch.Room, error) {
	var workers []*dispatch.Worker
	var err error
	if l.IsSorted() || l.HasBuilds() {
		workers, err = typedWorkers(ctx, q, rows)
	} else {
		workers, err = workersOf(rows)
	}
	if err != nil {
		return nil, err
	}
	return dispatch.NewRoom(workers, l), nil
}

func workersOf(rows []gen.WorkersLiveRow) ([]*dispatch.Worker, error) {
	workers := make([]*dispatch.Worker, len(rows))
	for i, row := range rows {
		w := &dispatch.Worker{ID: row.WorkerID, Slots: int(row.Slots), Rate: row.Rate}
		if err := json.Unmarshal(row.Partitions, &w.Partitions); err != nil {
			return nil, fmt.Errorf("read partitions of worker %s: %w", row.WorkerID, err)
		}
		workers[i] = w
	}
	return workers, nil
}

// typedWorkers returns the live workers with what they run and their builds.
func typedWorkers(ctx context.Context, q *gen.Queries, rows []gen.WorkersLiveRow) ([]*dispatch.Worker, error) {
	workers, err := workersOf(rows)
	if err != nil {
		return nil, err
	}
	typed, err := q.WorkersTypes(ctx, silentAfter)
	if err != nil {
		return nil, fmt.Errorf("read the job types of workers: %w", err)
	}
	byID := make(map[string]gen.WorkersTypesRow, len(typed))
	for _, row := range typed {
		byID[row.WorkerID] = row
	}
	for _, w := range workers {
		row := byID[w.ID]
		w.Build = row.Build
		if err := readRuns(w, row.JobTypes, row.Demands); err != nil {
			return nil, err
		}
		var rooms []room
		if row.Rooms != nil {
			if err := json.Unmarshal(row.Rooms, &rooms); err != nil {
				return nil, fmt.Errorf("read the slots of the pull workers of %s: %w", w.ID, err)
			}
		}
		for i := range min(len(rooms), len(w.Demands)) {
			w.Demands[i].Slots, w.Demands[i].Rate = rooms[i].Slots, rooms[i].Rate
		}
	}
	return workers, nil
}

// room is what changes all the time of a demand.
type room struct {
	Slots int     `json:"slots"`
	Rate  float64 `json:"rate,omitempty"`
}

// readRuns reads what a worker runs.
func readRuns(w *dispatch.Worker, jobTypes, demands json.RawMessage) error {
	var names []string
	if jobTypes != nil {
		if err := json.Unmarshal(jobTypes, &names); err != nil {
			return fmt.Errorf("read the job types of worker %s: %w", w.ID, err)
		}
	}
	w.RunOnly(names)
	if demands != nil {
		if err := json.Unmarshal(demands, &w.Demands); err != nil {
			return fmt.Errorf("read the demands of worker %s: %w", w.ID, err)
		}
	}
	return nil
}

// seeWorkers writes the workers of heartbeats. If some may run other jobs than before, it finds the jobs that have
// waited for that.
func seeWorkers(
	ctx context.Context, q *gen.Queries, latest map[string]jobevent.Heartbeat, l *dispatch.Ledger,
) error {
	p := gen.WorkersSeenParams{SilentAfter: silentAfter}
	for id, heartbeat := range latest {
		if heartbeat.Stopping {
			heartbeat.Slots, heartbeat.Demands = 0, nil // it gets nothing more
		}
		p.WorkerIDs = append(p.WorkerIDs, id)
		p.Partitions = append(p.Partitions, mustJSON(existing(heartbeat.Partitions)))
		p.Slots = append(p.Slots, int32Of(heartbeat.Slots))
		p.Builds = append(p.Builds, jobevent.CleanText(heartbeat.Build, nameMost))
		p.Rates = append(p.Rates, min(max(heartbeat.Rate, 0), maxRate))
		p.JobTypes = append(p.JobTypes, typesOf(heartbeat))
		demands, rooms := demandsOf(heartbeat)
		p.Demands, p.Rooms = append(p.Demands, demands), append(p.Rooms, rooms)
	}
	changed, err := q.WorkersSeen(ctx, p)
	if err != nil {
		return fmt.Errorf("write workers: %w", err)
	}
	if err := q.WorkersGone(ctx, silentAfter); err != nil {
		return fmt.Errorf("delete workers: %w", err)
	}
	if len(changed) == 0 {
		return nil
	}
	rows, err := q.WorkersLive(ctx, silentAfter)
	if err != nil {
		return fmt.Errorf("list workers: %w", err)
	}
	workers, err := typedWorkers(ctx, q, rows)
	if err != nil {
		return err
	}
	if asked := l.CompareTypes(workers); len(asked) > 0 {
		out, err := countAsked(ctx, q, asked)
		if err != nil {
			return err
		}
		l.SetAsked(out)
	}
	return wakeKinds(ctx, q, changed, workers, l)
}

// wakeKinds enters the lanes of jobs that a worker runs now and did not run before. The ledger does not have them.
func wakeKinds(
	ctx context.Context, q *gen.Queries, changed []gen.WorkersSeenRow, workers []*dispatch.Worker, l *dispatch.Ledger,
) error {
	var now, before []*dispatch.Worker
	for _, row := range changed {
		at := slices.IndexFunc(workers, func(w *dispatch.Worker) bool { return w.ID == row.WorkerID })
		if at >= 0 {
			now = append(now, workers[at])
		}
		if !row.WasLive {
			continue
		}
		w := &dispatch.Worker{ID: row.WorkerID}
		if err := json.Unmarshal(row.Partitions, &w.Partitions); err != nil {
			return fmt.Errorf("read former partitions of worker %s: %w", row.WorkerID, err)
		}
		if err := readRuns(w, row.JobTypes, row.Demands); err != nil {
			return err
		}
		before = append(before, w)
	}
	ranges := dispatch.KindRanges(now)
	for r := range dispatch.KindRanges(before) {
		delete(ranges, r)
	}
	for _, r := range l.IdleRanges() {
		ranges[r] = true
	}
	found := slices.Collect(maps.Keys(ranges))
	if len(found) == 0 {
		return nil
	}
	queues, froms, tos := split(found)
	err := q.UnservedForgetIn(ctx, gen.UnservedForgetInParams{Queues: queues, FromLanes: froms, ToLanes: tos})
	if err != nil {
		return fmt.Errorf("forget that jobs had no worker: %w", err)
	}
	lanes, err := lanesOf(ctx, q, found)
	for _, lane := range lanes {
		l.NoteReady(lane.Queue, lane.Lane, lane.FirstKey, lane.Rank)
		l.NoteKey(lane.Queue, lane.LastKey)
	}
	return err
}

// mostLanes bounds the lanes that one step finds. The watchdog finds the others.
const mostLanes = 1000

// lanesOf returns the lanes of ranges in which jobs wait.
func lanesOf(ctx context.Context, q *gen.Queries, ranges []dispatch.Range) ([]gen.LanesOfKindsRow, error) {
	queues, froms, tos := split(ranges)
	rows, err := q.LanesOfKinds(ctx, gen.LanesOfKindsParams{
		Queues: queues, FromLanes: froms, ToLanes: tos, Each: mostLanes, Most: mostLanes,
	})
	if err != nil {
		return nil, fmt.Errorf("find the lanes of kinds: %w", err)
	}
	return rows, nil
}

// split returns the columns of ranges.
func split(ranges []dispatch.Range) (queues, froms, tos []string) {
	for _, r := range ranges {
		queues, froms, tos = append(queues, r.Queue), append(froms, r.From), append(tos, r.To)
	}
	return queues, froms, tos
}

// countAsked counts the attempts of queues that are out, by kind.
func countAsked(ctx context.Context, q *gen.Queries, queues []string) (map[dispatch.Kind]int, error) {
	rows, err := q.OutByKind(ctx, queues)
	if err != nil {
		return nil, fmt.Errorf("count attempts by kind: %w", err)
	}
	out := make(map[dispatch.Kind]int, len(rows))
	for _, row := range rows {
		out[dispatch.Kind{Queue: row.Queue, JobType: row.JobType, OwnerID: row.OwnerID}] = int(row.Attempts)
	}
	return out, nil
}

// typesOf returns the job types of a heartbeat as the workers' table keeps them: the JSON null if the worker runs any,
// no value if the heartbeat's first part is missing, which names them.
func typesOf(heartbeat jobevent.Heartbeat) []byte {
	if heartbeat.Part > 0 {
		return nil
	}
	var names []string
	if heartbeat.OnlyTypes {
		names = make([]string, len(heartbeat.JobTypes))
		for i, t := range heartbeat.JobTypes {
			names[i] = t.Name
		}
		slices.Sort(names)
	}
	return mustJSON(names)
}

// demandsOf returns what the pull workers of a heartbeat ask for, and beside it how much; nil: it is of no function
// pull.
func demandsOf(heartbeat jobevent.Heartbeat) (demands, rooms json.RawMessage) {
	if heartbeat.Demands == nil {
		return nil, nil
	}
	static, changing := make([]dispatch.Demand, len(heartbeat.Demands)), make([]room, len(heartbeat.Demands))
	for i, d := range heartbeat.Demands {
		static[i] = dispatch.Demand{Everyone: d.Everyone, OwnerID: d.OwnerID, JobTypes: d.JobTypes, Queues: d.Queues}
		changing[i] = room{max(int(int32Of(d.Slots)), 0), min(max(d.Rate, 0), maxRate)}
	}
	return mustJSON(static), mustJSON(changing)
}

// existing removes numbers of partitions that no run-job topic has.
func existing(reported map[string][]int32) map[string][]int32 {
	partitions := make(map[string][]int32, len(reported))
	for queue, numbers := range reported {
		numbers = slices.DeleteFunc(slices.Clone(numbers), func(p int32) bool {
			return p < 0 || p >= jobevent.MaxRunPartitions
		})
		slices.Sort(numbers)
		partitions[queue] = slices.Compact(numbers)
	}
	return partitions
}
