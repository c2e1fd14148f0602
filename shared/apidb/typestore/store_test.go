package typestore_test

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/jobweaver/jobweaver/shared/apibody"
	"github.com/jobweaver/jobweaver/shared/apidb"
	"github.com/jobweaver/jobweaver/shared/apidb/apidbtest"
	"github.com/jobweaver/jobweaver/shared/apidb/typestore"
	"github.com/jobweaver/jobweaver/shared/apidb/workerstore"
	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/pgtest"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

func names(t *testing.T, s *typestore.Store, owner apidb.Owner) (all []string) {
	t.Helper()
	types, err := s.List(t.Context(), owner)
	if err != nil {
		t.Fatal(err)
	}
	for _, each := range types {
		all = append(all, each.OwnerID+"/"+each.Name+string(each.Schema))
	}
	return all
}

func same(t *testing.T, got []string, want ...string) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%q, want %q", got, want)
	}
	for i := range want {
		if got[i] != want[i] {
			t.Fatalf("%q, want %q", got, want)
		}
	}
}

func TestTypesAreLearnedOnceFromTheListOfAWorker(t *testing.T) {
	t.Parallel()
	h := apidbtest.New(t)
	s := typestore.New(h.Store)
	learn := func(h ...jobevent.Heartbeat) {
		t.Helper()
		var all []workerstore.Heartbeat
		for _, each := range h {
			all = append(all, workerstore.Heartbeat{Heartbeat: each})
		}
		if err := s.Learn(t.Context(), all); err != nil {
			t.Fatal(err)
		}
	}
	runs := func(worker string, types ...jobevent.JobType) jobevent.Heartbeat {
		return jobevent.Heartbeat{WorkerID: worker, JobTypes: types}
	}
	old, young := json.RawMessage(`{"const":1}`), json.RawMessage(`{"const":2}`)
	learn(runs("a", jobevent.JobType{Name: "SIMULATION"}, jobevent.JobType{Name: "OWN", Schema: old}, jobevent.JobType{Name: "ANY"}),
		jobevent.Heartbeat{WorkerID: "p", Demands: []jobevent.Demand{
			{OwnerID: "acme", JobTypes: []string{"OWN", "PULLED"}}, {OwnerID: "other", JobTypes: []string{"SECRET"}}, {Everyone: true, JobTypes: []string{"ANY"}},
		}})
	same(t, names(t, s, apidb.OwnerOf("acme")), "/ANY", "acme/OWN", `/OWN{"const":1}`, "acme/PULLED")
	same(t, names(t, s, apidb.Everyone), "/ANY", "acme/OWN", `/OWN{"const":1}`, "acme/PULLED", "other/SECRET")

	// The worker that started last decides, and the others say nothing new.
	learn(runs("b", jobevent.JobType{Name: "OWN", Schema: young}))
	learn(runs("a", jobevent.JobType{Name: "SIMULATION"}, jobevent.JobType{Name: "OWN", Schema: old}, jobevent.JobType{Name: "ANY"}))
	same(t, names(t, s, apidb.OwnerOf("")), "/ANY", `/OWN{"const":2}`)
	learn(runs("c", jobevent.JobType{Name: "OWN"})) // sends none
	same(t, names(t, s, apidb.OwnerOf("")), "/ANY", `/OWN{"const":2}`)
}

func TestFindingATypeCachesItUntilItChangesHere(t *testing.T) {
	t.Parallel()
	h := apidbtest.New(t)
	s := typestore.New(h.Store)
	find := func(owner string, fresh bool) int {
		t.Helper()
		found, err := s.Find(t.Context(), owner, "OWN", fresh)
		if err != nil {
			t.Fatal(err)
		}
		return len(found)
	}
	if n := find("acme", false); n != 0 {
		t.Fatal(n, "before")
	}
	h.Exec(t, "insert into job_types (owner_id, name) values ('acme', 'OWN')") // another gateway
	if stale, fresh := find("acme", false), find("acme", true); stale != 0 || fresh != 1 {
		t.Errorf("found %d, fresh %d", stale, fresh)
	}
	if err := s.Put(t.Context(), nil, typestore.Type{Name: "OWN", JobType: apibody.JobType{Schema: json.RawMessage(`true`)}}); err != nil {
		t.Fatal(err)
	}
	if mine, theirs := find("acme", false), find("other", false); mine != 2 || theirs != 1 {
		t.Errorf("found %d and %d", mine, theirs)
	}
	if is, err := s.Forget(t.Context(), nil, "acme", "OWN"); !is || err != nil {
		t.Error(is, err)
	}
	if is, err := s.Forget(t.Context(), nil, "acme", "OWN"); is || err != nil {
		t.Error(is, err)
	}
	if n := find("acme", false); n != 1 {
		t.Errorf("%d are left", n)
	}
}

func TestAnOwnerHasABoundedNumberOfTypes(t *testing.T) {
	t.Parallel()
	h := apidbtest.New(t)
	s := typestore.New(h.Store)
	h.Exec(t, "insert into job_types (owner_id, name) select 'acme', 'T' || n from generate_series(1, $1::int) n", typestore.MostOfOwner)
	more := []workerstore.Heartbeat{{Heartbeat: jobevent.Heartbeat{WorkerID: "p", Demands: []jobevent.Demand{
		{OwnerID: "acme", JobTypes: []string{"MORE", "T1"}}, {OwnerID: "other", JobTypes: []string{"MORE"}},
	}}}}
	if err := s.Learn(t.Context(), more); err != nil {
		t.Fatal(err)
	}
	if n := len(names(t, s, apidb.Everyone)); n != typestore.MostOfOwner+1 {
		t.Errorf("%d types are known", n)
	}
	if err := s.Put(t.Context(), nil, typestore.Type{OwnerID: "acme", Name: "MORE"}); !errors.Is(err, typestore.ErrFull) {
		t.Error(err)
	}
}
