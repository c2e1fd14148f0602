package apidb_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/jobweaver/jobweaver/shared/apidb"
	"github.com/jobweaver/jobweaver/shared/apidb/apidbtest"
	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/jobstate"
)

// calling is a job whose end is to be delivered.
func calling(url string) apidb.NewJob {
	job := apidbtest.NewJob()
	job.Request.CallbackURL = url
	return job
}

func onAttempt(n int) func(*jobevent.Status) { return func(s *jobevent.Status) { s.Attempt = n } }

// versions are those of a job's deliveries, newest first.
func (h *fixture) versions(t *testing.T, id uuid.UUID) (versions []int64) {
	t.Helper()
	found, err := h.JobDeliveries(t.Context(), apidb.Everyone, id, 100)
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range found {
		versions = append(versions, d.Version)
	}
	return versions
}

func TestEachEndOfAJobThatNamesAURLIsToBeDelivered(t *testing.T) {
	t.Parallel()
	h := open(t)
	for name, c := range map[string]struct {
		words []apidb.StatusWord
		want  []int64
	}{
		"one that has not ended":    {[]apidb.StatusWord{apidbtest.Status(uuid.Nil, 1, jobstate.Running, onAttempt(1))}, nil},
		"one that has":              {[]apidb.StatusWord{apidbtest.Status(uuid.Nil, 2, jobstate.Completed, onAttempt(1))}, []int64{2}},
		"the same word again":       {[]apidb.StatusWord{apidbtest.Status(uuid.Nil, 2, jobstate.Cancelled), apidbtest.Status(uuid.Nil, 2, jobstate.Cancelled)}, []int64{2}},
		"an older word":             {[]apidb.StatusWord{apidbtest.Status(uuid.Nil, 2, jobstate.Failed), apidbtest.Status(uuid.Nil, 1, jobstate.Failed)}, []int64{2}},
		"the same end, once more":   {[]apidb.StatusWord{apidbtest.Status(uuid.Nil, 2, jobstate.Failed, onAttempt(1)), apidbtest.Status(uuid.Nil, 3, jobstate.Failed, onAttempt(1))}, []int64{2}},
		"an end anew":               {[]apidb.StatusWord{apidbtest.Status(uuid.Nil, 2, jobstate.Failed, onAttempt(1)), apidbtest.Status(uuid.Nil, 3, jobstate.Pending, onAttempt(1)), apidbtest.Status(uuid.Nil, 6, jobstate.Failed, onAttempt(2))}, []int64{6, 2}},
		"an end anew, unseen":       {[]apidb.StatusWord{apidbtest.Status(uuid.Nil, 2, jobstate.Failed, onAttempt(1)), apidbtest.Status(uuid.Nil, 6, jobstate.Failed, onAttempt(2))}, []int64{6, 2}},
		"another end, unseen":       {[]apidb.StatusWord{apidbtest.Status(uuid.Nil, 2, jobstate.Failed, onAttempt(1)), apidbtest.Status(uuid.Nil, 6, jobstate.Cancelled, onAttempt(1))}, []int64{6, 2}},
		"an end that comes at once": {[]apidb.StatusWord{apidbtest.Status(uuid.Nil, 9, jobstate.Completed, onAttempt(3))}, []int64{9}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			named, plain := h.Accept(t, calling("https://Example.org/x")).JobID, h.Accept(t, apidbtest.NewJob()).JobID
			for _, said := range c.words {
				for _, id := range []uuid.UUID{named, plain} {
					said.JobID = id
					h.Apply(t, said)
				}
			}
			if got := h.versions(t, named); !slices.Equal(got, c.want) {
				t.Errorf("got %v, want %v", got, c.want)
			}
			if got := h.versions(t, plain); got != nil {
				t.Errorf("of a plain one: %v", got)
			}
		})
	}
}

// However a job comes in, its URL is kept, and with it the hash of its request.
func TestAJobKeepsItsURLHoweverItComesIn(t *testing.T) {
	t.Parallel()
	h := open(t)
	one := calling("https://example.org/1")
	withKey := apidbtest.Keyed("k", "b")
	withKey.Request.CallbackURL = "https://example.org/2"
	ordered := calling("https://example.org/3")
	ordered.Request.OrderingKey = "o"
	after := calling("https://example.org/4")
	after.Request.After = []uuid.UUID{one.JobID}
	for _, jobs := range [][]apidb.NewJob{{one}, {withKey, apidbtest.NewJob()}, {ordered}, {after, calling("https://example.org/5"), apidbtest.NewJob()}} {
		accepted, err := h.InsertJobs(t.Context(), jobs)
		if err != nil {
			t.Fatal(err)
		}
		for i, a := range accepted {
			if got := h.ReadJob(t, a.JobID).CallbackURL; got != jobs[i].Request.CallbackURL {
				t.Errorf("got %q, want %q", got, jobs[i].Request.CallbackURL)
			}
		}
	}
}

func TestADeliveryIsOnesAtATime(t *testing.T) {
	t.Parallel()
	h := open(t)
	var want []uuid.UUID
	for range 20 {
		id := h.Accept(t, calling("http://HOST:81/x?y=http://other/")).JobID
		h.Apply(t, apidbtest.Status(id, 2, jobstate.Completed))
		want = append(want, id)
	}
	id := h.Accept(t, calling("https://b.example.org")).JobID
	h.Apply(t, apidbtest.Status(id, 2, jobstate.Completed))
	places, next, err := h.DeliveryTurns(t.Context(), apidb.DeliveryPage{MaxOwners: 1, MaxHosts: 10})
	both := []apidb.DuePlace{{Place: apidb.Place{Host: "b.example.org"}, Due: true}, {Place: apidb.Place{Host: "host:81"}, Due: true}}
	if err != nil || !slices.Equal(places, both) || next != "" {
		t.Fatalf("got %v, %q, %v", places, next, err)
	}
	page := apidb.DeliveryPage{After: map[string]string{"": "b.example.org", "other": "x"}, MaxOwners: 1, MaxHosts: 1}
	if rest, _, err := h.DeliveryTurns(t.Context(), page); err != nil || !slices.Equal(rest, both[1:]) {
		t.Errorf("got %v, %v", rest, err)
	}
	var got []apidb.Claimed
	for range 3 {
		some, err := h.ClaimDeliveries(t.Context(), map[apidb.Place]int{{Host: "host:81"}: 8, {Host: "none"}: 8, {Owner: "other", Host: "host:81"}: 8}, time.Minute)
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, some...)
	}
	if len(got) != 20 {
		t.Fatalf("claimed %d", len(got))
	}
	for _, c := range got {
		if !slices.Contains(want, c.JobID) || c.Tries != 1 || c.Broken != nil || c.Job.Status != jobstate.Completed || c.Version != 2 {
			t.Errorf("got %+v", c)
		}
	}
	if places, _, err = h.DeliveryTurns(t.Context(), page); err != nil || len(places) != 1 || places[0].Due {
		t.Errorf("got %v, %v", places, err)
	}
	h.settled(t, got)
}

// settled: what comes of a try counts while it is the last.
func (h *fixture) settled(t *testing.T, got []apidb.Claimed) {
	t.Helper()
	state := func(c apidb.Claimed) apidb.Delivery {
		t.Helper()
		found, err := h.JobDeliveries(t.Context(), apidb.Everyone, c.JobID, 1)
		if err != nil || len(found) != 1 {
			t.Fatalf("got %v, %v", found, err)
		}
		return found[0]
	}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(h.SettleDelivery(t.Context(), got[0], apidb.Tried{Status: apidb.DeliveryDelivered, Answer: 204}))
	if d := state(got[0]); d.Status != apidb.DeliveryDelivered || *d.LastAnswer != 204 || d.NextAt != nil || d.FinishedAt == nil {
		t.Errorf("got %+v", d)
	}
	must(h.SettleDelivery(t.Context(), got[0], apidb.Tried{Status: apidb.DeliveryFailed, Error: "late"}))
	if d := state(got[0]); d.Status != apidb.DeliveryDelivered || d.LastError != "" {
		t.Errorf("got %+v", d)
	}
	must(h.SettleDelivery(t.Context(), got[1], apidb.Tried{Status: apidb.DeliveryPending, Wait: time.Hour, Error: "no answer"}))
	if d := state(got[1]); d.Status != apidb.DeliveryPending || d.LastAnswer != nil || time.Until(*d.NextAt) < 59*time.Minute {
		t.Errorf("got %+v", d)
	}
	must(h.ReleaseDelivery(t.Context(), got[2]))
	if d := state(got[2]); d.Tries != 0 || d.NextAt.After(time.Now()) {
		t.Errorf("got %+v", d)
	}
	again, err := h.ClaimDeliveries(t.Context(), map[apidb.Place]int{{Host: "host:81"}: 8}, 0)
	if err != nil || len(again) != 1 || again[0].JobID != got[2].JobID {
		t.Errorf("got %v, %v", again, err)
	}
	other, err := h.ClaimDeliveries(t.Context(), map[apidb.Place]int{{Host: "host:81"}: 8}, time.Minute) // the lease was none
	if err != nil || len(other) != 1 || other[0].Tries != 2 {
		t.Errorf("got %v, %v", other, err)
	}
	must(h.SettleDelivery(t.Context(), again[0], apidb.Tried{Status: apidb.DeliveryFailed}))
	must(h.ReleaseDelivery(t.Context(), again[0]))
	if d := state(got[2]); d.Status != apidb.DeliveryPending || d.Tries != 2 {
		t.Errorf("got %+v", d)
	}
}

// A delivery that is wanted anew counts its tries from the first: the word on a try of before is none on the new first one.
func TestTheWordOnATryOfBeforeARetryByHandIsNone(t *testing.T) {
	t.Parallel()
	h := open(t)
	id := h.Accept(t, calling("http://host/")).JobID
	h.Apply(t, apidbtest.Status(id, 2, jobstate.Completed))
	claim := func() apidb.Claimed {
		t.Helper()
		got, err := h.ClaimDeliveries(t.Context(), map[apidb.Place]int{{Host: "host"}: 8}, time.Minute)
		if err != nil || len(got) != 1 || got[0].Tries != 1 {
			t.Fatalf("claimed %v, %v", got, err)
		}
		return got[0]
	}
	is := func(want apidb.DeliveryStatus) {
		t.Helper()
		if found, err := h.JobDeliveries(t.Context(), apidb.Everyone, id, 2); err != nil || len(found) != 1 || found[0].Status != want || found[0].Tries != 1 {
			t.Errorf("got %+v, %v", found, err)
		}
	}
	before := claim()
	if _, err := h.RetryDelivery(t.Context(), apidb.Everyone, id, 2); err != nil {
		t.Fatal(err)
	}
	anew := claim()
	if err := h.SettleDelivery(t.Context(), before, apidb.Tried{Status: apidb.DeliveryFailed, Answer: 410}); err != nil {
		t.Fatal(err)
	}
	if err := h.ReleaseDelivery(t.Context(), before); err != nil {
		t.Fatal(err)
	}
	is(apidb.DeliveryPending)
	if err := h.SettleDelivery(t.Context(), anew, apidb.Tried{Status: apidb.DeliveryDelivered, Answer: 200}); err != nil {
		t.Fatal(err)
	}
	is(apidb.DeliveryDelivered)
}

func TestDeliveriesAreListedInPages(t *testing.T) {
	t.Parallel()
	h := open(t)
	var all []string
	for n := range 7 {
		id := h.Accept(t, calling("http://x/")).JobID
		h.Apply(t, apidbtest.Status(id, 2, jobstate.Failed, onAttempt(1)))
		all = append([]string{jobevent.StatusID(id, 2)}, all...)
		if n == 3 {
			h.Apply(t, apidbtest.Status(id, 5, jobstate.Completed, onAttempt(2)))
			all = append([]string{jobevent.StatusID(id, 5)}, all...)
		}
	}
	for _, status := range []apidb.DeliveryStatus{"", apidb.DeliveryPending} {
		var got []string
		f := apidb.DeliveryFilter{Status: status, Limit: 3}
		for more := true; more; {
			var found []apidb.Delivery
			var err error
			if found, more, err = h.ListDeliveries(t.Context(), apidb.Everyone, f); err != nil {
				t.Fatal(err)
			}
			for _, d := range found {
				got, f.BeforeID, f.BeforeVersion = append(got, d.ID()), d.JobID, d.Version
			}
		}
		if !slices.Equal(got, all) {
			t.Errorf("got %v, want %v", got, all)
		}
	}
	if found, more, err := h.ListDeliveries(t.Context(), apidb.Everyone, apidb.DeliveryFilter{Status: apidb.DeliveryFailed, Limit: 3}); len(found) > 0 || more || err != nil {
		t.Errorf("got %v, %v", found, err)
	}
	if _, err := h.JobDeliveries(t.Context(), apidb.Everyone, uuid.New(), 1); !errors.Is(err, apidb.ErrNoJob) {
		t.Errorf("got %v", err)
	}
}

// What is finished goes with its job, what is not stays.
func TestAJobTakesItsFinishedDeliveriesAlong(t *testing.T) {
	t.Parallel()
	h := open(t)
	id := h.Accept(t, calling("http://x/")).JobID
	h.Apply(t, apidbtest.Status(id, 2, jobstate.Failed, onAttempt(1)))
	claimed, err := h.ClaimDeliveries(t.Context(), map[apidb.Place]int{{Host: "x"}: 1}, time.Minute)
	if err != nil || len(claimed) != 1 {
		t.Fatalf("got %v, %v", claimed, err)
	}
	if err := h.SettleDelivery(t.Context(), claimed[0], apidb.Tried{Status: apidb.DeliveryFailed, Error: "no"}); err != nil {
		t.Fatal(err)
	}
	h.Apply(t, apidbtest.Status(id, 5, jobstate.Cancelled, onAttempt(1)))
	h.Exec(t, "update jobs set updated_at = now() - interval '2 h', created_at = now() - interval '2 h'")
	walked, err := h.ExpireJobs(t.Context(), time.Now().Add(time.Hour), apidb.Ages{Cancelled: time.Second}, uuid.Nil, 10)
	if err != nil || walked.Gone != 1 {
		t.Fatalf("got %+v, %v", walked, err)
	}
	if got := h.versions(t, id); !slices.Equal(got, []int64{5}) {
		t.Errorf("left are %v", got)
	}
}
