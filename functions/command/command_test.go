package command

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cloudevents/sdk-go/v2/event"
	"github.com/google/uuid"

	"github.com/jobweaver/jobweaver/migrations"
	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/pgtest"
	"github.com/jobweaver/jobweaver/shared/schedulerdb"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

func TestOddCommandsAreRejectedOrDoNoHarm(t *testing.T) {
	t.Parallel()
	store, err := schedulerdb.Open(t.Context(), pgtest.Database(t, migrations.Scheduler),
		schedulerdb.Config{Lease: 15 * time.Second, MaxLost: 3})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(store.Close)
	f, id := New(store), uuid.Must(uuid.NewV7())
	if _, err := store.Ingest(t.Context(), []jobevent.Created{
		{JobID: id, JobType: "A", Queue: "default", Payload: []byte(`1`), Spec: jobevent.Spec{TimeoutMs: 1}},
	}); err != nil {
		t.Fatal(err)
	}
	oneReport := fmt.Sprintf(`{"jobId": %q, "version": 0},`, id)
	for name, c := range map[string]struct {
		data    string
		invalid bool
	}{
		"a cancel":                   {`"jobId": "%s", "number": 1, "command": "cancel"`, false},
		"an unknown command":         {`"jobId": "%s", "number": 2, "command": "x\u0000", "by": "\u0000"`, false},
		"an unknown job":             {`"jobId": "00000000-0000-0000-0000-000000000001", "number": 1, "command": "cancel"`, false},
		"no number":                  {`"jobId": "%s", "command": "cancel"`, true},
		"a negative number":          {`"jobId": "%s", "number": -1, "command": "cancel"`, true},
		"a number beyond its column": {`"jobId": "%s", "number": 4294967297, "command": "cancel"`, true},
		"no job":                     {`"number": 1, "command": "cancel"`, true},
		"a job that is none":         {`"jobId": "x", "number": 1, "command": "cancel"`, true},
		"a reschedule":               {`"jobId": "%s", "number": 3, "command": "reschedule", "runAt": "2030-01-01T00:00:00Z"`, false},
		"a reschedule to no instant": {`"jobId": "%s", "number": 4, "command": "reschedule"`, true},
		"a reschedule to 1 BC":       {`"jobId": "%s", "number": 4, "command": "reschedule", "runAt": "0000-01-01T00:00:00Z"`, true},
		"a delete":                   {`"jobId": "%s", "number": 5, "command": "delete"`, false},
		"a report":                   {`"command": "report", "reports": [` + strings.TrimSuffix(oneReport, ",") + `]`, false},
		"a report of nothing":        {`"command": "report"`, false},
		"a report of too many":       {`"command": "report", "reports": [` + strings.Repeat(oneReport, 1000) + `{}]`, true},
		"a report of a bad version":  {`"command": "report", "reports": [{"jobId": "%s", "version": -9223372036854775808}]`, false},
	} {
		t.Run(name, func(t *testing.T) {
			e := event.New()
			e.SetType(jobevent.TypeCommand)
			e.DataEncoded = []byte("{" + strings.Replace(c.data, "%s", id.String(), 1) + "}")
			if events, err := f.Handle(t.Context(), []jobevent.Item{jobevent.ItemOf(e)}); errors.Is(err, jobevent.ErrInvalid) != c.invalid || err != nil && !c.invalid {
				t.Errorf("returned %v, %v", events, err)
			}
		})
	}
}

func TestCommandsAndControlsComeInOneBatch(t *testing.T) {
	t.Parallel()
	store, err := schedulerdb.Open(t.Context(), pgtest.Database(t, migrations.Scheduler),
		schedulerdb.Config{Lease: 15 * time.Second, MaxLost: 3})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(store.Close)
	f := New(store)
	held, other := uuid.Must(uuid.NewV7()), uuid.Must(uuid.NewV7())
	handle := func(typ string, data ...any) (types []string) {
		t.Helper()
		var batch []jobevent.Item
		for _, d := range data {
			kind := typ
			if _, ok := d.(jobevent.Command); ok {
				kind = jobevent.TypeCommand
			}
			e, err := jobevent.New(kind, jobevent.Meta{Function: "test", ID: "1"}, d)
			if err != nil {
				t.Fatal(err)
			}
			batch = append(batch, e)
		}
		published, err := f.Handle(t.Context(), batch)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range published {
			types = append(types, e.Type())
		}
		return types
	}
	pause := jobevent.Control{Kind: jobevent.ControlType, Name: "A", Version: 1, Paused: true}
	if got := handle(jobevent.TypeControl, pause); !slices.Equal(got, []string{jobevent.TypeApplied}) {
		t.Errorf("a pause returned %v", got)
	}
	events, err := store.Ingest(t.Context(), []jobevent.Created{
		{JobID: held, JobType: "A", Queue: "default", Payload: []byte(`1`), Spec: jobevent.Spec{TimeoutMs: 1}},
		{JobID: other, JobType: "B", Queue: "default", Payload: []byte(`1`), Spec: jobevent.Spec{TimeoutMs: 1}},
	})
	if err != nil || len(events.Runs) != 1 || events.Runs[0].JobID != other {
		t.Fatalf("%+v, %v", events, err)
	}
	resume := jobevent.Control{Kind: jobevent.ControlType, Name: "A", Version: 2}
	got := handle(jobevent.TypeControl, resume, jobevent.Command{JobID: other, Number: 1, Command: "cancel"}, pause)
	slices.Sort(got)
	if want := []string{
		jobevent.TypeAttemptCancel, jobevent.TypeApplied, jobevent.TypeRun, jobevent.TypeStatus,
	}; !slices.Equal(got, want) {
		t.Errorf("one batch returned %v, want %v", got, want)
	}
	odd, err := jobevent.New(jobevent.TypeControl, jobevent.Meta{Function: "test", ID: "1"}, jobevent.Control{Kind: "tag"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.Handle(t.Context(), []jobevent.Item{odd}); !errors.Is(err, jobevent.ErrInvalid) {
		t.Errorf("a control of no kind: %v", err)
	}
}
