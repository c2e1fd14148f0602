package pull

import (
	"encoding/json"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/jobweaver/jobweaver/shared/apibody"
	"github.com/jobweaver/jobweaver/shared/apierror"
	"github.com/jobweaver/jobweaver/shared/pullwire"
	"github.com/jobweaver/jobweaver/shared/testwait"
)

// save sends checkpoints, and returns the statuses of the answers.
func (i *instance) save(caller pullwire.Caller, all ...apibody.WorkCheckpoint) (statuses []int) {
	i.x.t.Helper()
	var got pullwire.Settled
	i.post(pullwire.CheckpointPath, pullwire.Checkpoints{
		Caller: caller, WorkCheckpoints: apibody.WorkCheckpoints{Worker: "w", Checkpoints: all},
	}, &got)
	for _, answer := range got.Results {
		statuses = append(statuses, answer.Status)
		if answer.Status == http.StatusConflict && answer.Error.ErrorCode != apierror.AttemptOver {
			i.x.t.Errorf("refused with %+v", answer.Error)
		}
	}
	return statuses
}

func checkpoint(token string, number int64, data string) apibody.WorkCheckpoint {
	return apibody.WorkCheckpoint{Token: token, Number: number, Checkpoint: json.RawMessage(data)}
}

func TestTheNextAttemptIsHandedOutWithTheCheckpoint(t *testing.T) {
	x := newFixture(t)
	i := x.start(nil)
	run := x.run("RESIZE", "acme", nil)
	first := i.one("RESIZE")
	if first.Checkpoint != nil && string(first.Checkpoint) != "null" {
		t.Errorf("a first attempt has the checkpoint %s", first.Checkpoint)
	}
	other := pullwire.Caller{Owner: "other"}
	for _, c := range []struct {
		what string
		got  []int
		want []int
	}{
		{"two saves at once, the later one first", i.save(everyone, checkpoint(first.Token, 3, `{"page":"<3>"}`)), []int{200}},
		{"one that was delayed", i.save(everyone, checkpoint(first.Token, 2, `{"page":2}`)), []int{200}},
		{"one of another caller", i.save(other, checkpoint(first.Token, 4, `{"page":9}`)), []int{409}},
		{"an unknown token beside a good one", i.save(everyone,
			checkpoint("i.x", 1, `1`), checkpoint(first.Token, 3, `{"page":"<3>"}`)), []int{409, 200}},
		{"JSON that cannot be stored", i.save(everyone, checkpoint(first.Token, 5, `{"a":1,"a":2}`)), []int{400}},
	} {
		if fmt.Sprint(c.got) != fmt.Sprint(c.want) {
			t.Errorf("%s: answered %v, want %v", c.what, c.got, c.want)
		}
	}
	i.wantSettled(http.StatusOK, apibody.WorkResult{Token: first.Token, Status: apibody.WorkSnoozed, Snooze: time.Second})
	if got := i.save(everyone, checkpoint(first.Token, 9, `{"page":9}`)); fmt.Sprint(got) != "[409]" {
		t.Errorf("after its result a save is answered %v", got)
	}
	run.Attempt = 2
	x.order(run)
	second := i.one("RESIZE")
	if string(second.Checkpoint) != `{"page":"<3>"}` {
		t.Errorf("the second attempt has the checkpoint %s", second.Checkpoint)
	}
	if got := i.save(everyone, checkpoint(second.Token, 1, `{"page":4}`), checkpoint(first.Token, 99, `{"page":9}`)); fmt.Sprint(got) != "[200 409]" {
		t.Errorf("both attempts save, and are answered %v", got)
	}
}

// A pull worker that was silent is too late: another instance has settled its attempt, or this one has.
func TestALostAttemptSavesNoCheckpoint(t *testing.T) {
	x := newFixture(t)
	i := x.start(func(_ *Config, times *timing) { times.lease = 100 * time.Millisecond })
	run := x.run("RESIZE", "", nil)
	a := i.one("RESIZE")
	if kind, _ := x.outcome(run); kind != "lost" {
		t.Fatalf("it is %s", kind)
	}
	if got := i.save(everyone, checkpoint(a.Token, 1, `1`)); fmt.Sprint(got) != "[409]" {
		t.Errorf("answered %v", got)
	}
}

// While another session holds the row of the attempt, pull cannot know whether a checkpoint will be stored.
func TestASaveThatIsNotStoredInTimeIsToBeRepeated(t *testing.T) {
	x := newFixture(t)
	i := x.start(func(_ *Config, times *timing) { times.settle = 100 * time.Millisecond })
	x.run("RESIZE", "", nil)
	a := i.one("RESIZE")
	conn, err := pgx.Connect(t.Context(), x.url)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(t.Context()) }()
	tx, err := conn.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(t.Context(), "SELECT FROM blocks WHERE block_id = block_of($1) FOR UPDATE", a.JobID); err != nil {
		t.Fatal(err)
	}
	if got := i.save(everyone, checkpoint(a.Token, 1, `1`)); fmt.Sprint(got) != "[503]" {
		t.Errorf("answered %v", got)
	}
	if err := tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	testwait.Until(t, "the save is repeated and stored", func() bool {
		return fmt.Sprint(i.save(everyone, checkpoint(a.Token, 1, `1`))) == "[200]"
	})
}
