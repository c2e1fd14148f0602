package deliverystore_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/jobweaver/jobweaver/shared/apidb"
	"github.com/jobweaver/jobweaver/shared/apidb/apidbtest"
	"github.com/jobweaver/jobweaver/shared/apidb/deliverystore"
	"github.com/jobweaver/jobweaver/shared/apidb/jobstore"
	"github.com/jobweaver/jobweaver/shared/apidb/statusstore"
	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/jobstate"
)

// calling returns a job whose end is to be delivered.
func calling(url string) jobstore.NewJob {
	job := apidbtest.NewJob()
	job.Request.CallbackURL = url
	return job
}

// versions returns the versions of a job's deliveries, newest first.
func (h *fixture) versions(t *testing.T, id uuid.UUID) (versions []int64) {
	t.Helper()
	found, err := h.Deliveries.OfJob(t.Context(), apidb.Everyone, id, 100)
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
		statuses []statusstore.PublishedStatus
		want     []int64
	}{
		"one that has not ended":    {[]statusstore.PublishedStatus{apidbtest.Status(uuid.Nil, 1, jobstate.Running, apidbtest.OfAttempt(1))}, nil},
		"one that has":              {[]statusstore.PublishedStatus{apidbtest.Status(uuid.Nil, 2, jobstate.Completed, apidbtest.OfAttempt(1))}, []int64{2}},
		"the same word again":       {[]statusstore.PublishedStatus{apidbtest.Status(uuid.Nil, 2, jobstate.Cancelled), apidbtest.Status(uuid.Nil, 2, jobstate.Cancelled)}, []int64{2}},
		"an older word":             {[]statusstore.PublishedStatus{apidbtest.Status(uuid.Nil, 2, jobstate.Failed), apidbtest.Status(uuid.Nil, 1, jobstate.Failed)}, []int64{2}},
		"the same end, once more":   {[]statusstore.PublishedStatus{apidbtest.Status(uuid.Nil, 2, jobstate.Failed, apidbtest.OfAttempt(1)), apidbtest.Status(uuid.Nil, 3, jobstate.Failed, apidbtest.OfAttempt(1))}, []int64{2}},
		"an end anew":               {[]statusstore.PublishedStatus{apidbtest.Status(uuid.Nil, 2, jobstate.Failed, apidbtest.OfAttempt(1)), apidbtest.Status(uuid.Nil, 3, jobstate.Pending, apidbtest.OfAttempt(1)), apidbtest.Status(uuid.Nil, 6, jobstate.Failed, apidbtest.OfAttempt(2))}, []int64{6, 2}},
		"an end anew, unseen":       {[]statusstore.PublishedStatus{apidbtest.Status(uuid.Nil, 2, jobstate.Failed, apidbtest.OfAttempt(1)), apidbtest.Status(uuid.Nil, 6, jobstate.Failed, apidbtest.OfAttempt(2))}, []int64{6, 2}},
		"another end, unseen":       {[]statusstore.PublishedStatus{apidbtest.Status(uuid.Nil, 2, jobstate.Failed, apidbtest.OfAttempt(1)), apidbtest.Status(uuid.Nil, 6, jobstate.Cancelled, apidbtest.OfAttempt(1))}, []int64{6, 2}},
		"an end that comes at once": {[]statusstore.PublishedStatus{apidbtest.Status(uuid.Nil, 9, jobstate.Completed, apidbtest.OfAttempt(3))}, []int64{9}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			named, plain := h.Accept(t, calling("https://Example.org/x")).JobID, h.Accept(t, apidbtest.NewJob()).JobID
			for _, status := range c.statuses {
				for _, id := range []uuid.UUID{named, plain} {
					status.JobID = id
					h.Apply(t, status)
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

// Whichever statement accepts a job, its URL and the hash of its request are stored.
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
	for _, jobs := range [][]jobstore.NewJob{{one}, {withKey, apidbtest.NewJob()}, {ordered}, {after, calling("https://example.org/5"), apidbtest.NewJob()}} {
		accepted, err := h.Jobs.InsertJobs(t.Context(), jobs)
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
	places, next, err := h.Deliveries.Turns(t.Context(), deliverystore.Page{MaxOwners: 1, MaxHosts: 10})
	both := []deliverystore.DuePlace{{Place: deliverystore.Place{Host: "b.example.org"}, Due: true}, {Place: deliverystore.Place{Host: "host:81"}, Due: true}}
	if err != nil || !slices.Equal(places, both) || next != "" {
		t.Fatalf("got %v, %q, %v", places, next, err)
	}
	page := deliverystore.Page{After: map[string]string{"": "b.example.org", "other": "x"}, MaxOwners: 1, MaxHosts: 1}
	if rest, _, err := h.Deliveries.Turns(t.Context(), page); err != nil || !slices.Equal(rest, both[1:]) {
		t.Errorf("got %v, %v", rest, err)
	}
	var got []deliverystore.Claimed
	for range 3 {
		some, err := h.Deliveries.Claim(t.Context(), map[deliverystore.Place]int{{Host: "host:81"}: 8, {Host: "none"}: 8, {Owner: "other", Host: "host:81"}: 8}, time.Minute)
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
	if places, _, err = h.Deliveries.Turns(t.Context(), page); err != nil || len(places) != 1 || places[0].Due {
		t.Errorf("got %v, %v", places, err)
	}
	h.settled(t, got)
}

// settled checks that the result of a try counts as long as no later try has begun.
func (h *fixture) settled(t *testing.T, got []deliverystore.Claimed) {
	t.Helper()
	state := func(c deliverystore.Claimed) deliverystore.Delivery {
		t.Helper()
		found, err := h.Deliveries.OfJob(t.Context(), apidb.Everyone, c.JobID, 1)
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
	must(h.Deliveries.Settle(t.Context(), got[0], deliverystore.Tried{Status: deliverystore.Delivered, Answer: 204}))
	if d := state(got[0]); d.Status != deliverystore.Delivered || *d.LastAnswer != 204 || d.NextAt != nil || d.FinishedAt == nil {
		t.Errorf("got %+v", d)
	}
	must(h.Deliveries.Settle(t.Context(), got[0], deliverystore.Tried{Status: deliverystore.Failed, Error: "late"}))
	if d := state(got[0]); d.Status != deliverystore.Delivered || d.LastError != "" {
		t.Errorf("got %+v", d)
	}
	must(h.Deliveries.Settle(t.Context(), got[1], deliverystore.Tried{Status: deliverystore.Pending, Wait: time.Hour, Error: "no answer"}))
	if d := state(got[1]); d.Status != deliverystore.Pending || d.LastAnswer != nil || time.Until(*d.NextAt) < 59*time.Minute {
		t.Errorf("got %+v", d)
	}
	must(h.Deliveries.Release(t.Context(), got[2]))
	if d := state(got[2]); d.Tries != 0 || d.NextAt.After(time.Now()) {
		t.Errorf("got %+v", d)
	}
	again, err := h.Deliveries.Claim(t.Context(), map[deliverystore.Place]int{{Host: "host:81"}: 8}, 0)
	if err != nil || len(again) != 1 || again[0].JobID != got[2].JobID {
		t.Errorf("got %v, %v", again, err)
	}
	other, err := h.Deliveries.Claim(t.Context(), map[deliverystore.Place]int{{Host: "host:81"}: 8}, time.Minute) // the lease was zero
	if err != nil || len(other) != 1 || other[0].Tries != 2 {
		t.Errorf("got %v, %v", other, err)
	}
	must(h.Deliveries.Settle(t.Context(), again[0], deliverystore.Tried{Status: deliverystore.Failed}))
	must(h.Deliveries.Release(t.Context(), again[0]))
	if d := state(got[2]); d.Status != deliverystore.Pending || d.Tries != 2 {
		t.Errorf("got %+v", d)
	}
}

// A restarted delivery counts its tries from 1, so a result of an earlier try must not settle the new first one.
func TestTheResultOfATryBeforeARestartIsIgnored(t *testing.T) {
	t.Parallel()
	h := open(t)
	id := h.Accept(t, calling("http://host/")).JobID
	h.Apply(t, apidbtest.Status(id, 2, jobstate.Completed))
	claim := func() deliverystore.Claimed {
		t.Helper()
		got, err := h.Deliveries.Claim(t.Context(), map[deliverystore.Place]int{{Host: "host"}: 8}, time.Minute)
		if err != nil || len(got) != 1 || got[0].Tries != 1 {
			t.Fatalf("claimed %v, %v", got, err)
		}
		return got[0]
	}
	is := func(want deliverystore.Status) {
		t.Helper()
		if found, err := h.Deliveries.OfJob(t.Context(), apidb.Everyone, id, 2); err != nil || len(found) != 1 || found[0].Status != want || found[0].Tries != 1 {
			t.Errorf("got %+v, %v", found, err)
		}
	}
	before := claim()
	if _, err := h.Deliveries.Retry(t.Context(), nil, apidb.Everyone, id, 2); err != nil {
		t.Fatal(err)
	}
	anew := claim()
	if err := h.Deliveries.Settle(t.Context(), before, deliverystore.Tried{Status: deliverystore.Failed, Answer: 410}); err != nil {
		t.Fatal(err)
	}
	if err := h.Deliveries.Release(t.Context(), before); err != nil {
		t.Fatal(err)
	}
	is(deliverystore.Pending)
	if err := h.Deliveries.Settle(t.Context(), anew, deliverystore.Tried{Status: deliverystore.Delivered, Answer: 200}); err != nil {
		t.Fatal(err)
	}
	is(deliverystore.Delivered)
}

func TestDeliveriesAreListedInPages(t *testing.T) {
	t.Parallel()
	h := open(t)
	var all []string
	for n := range 7 {
		id := h.Accept(t, calling("http://x/")).JobID
		h.Apply(t, apidbtest.Status(id, 2, jobstate.Failed, apidbtest.OfAttempt(1)))
		all = append([]string{jobevent.StatusID(id, 2)}, all...)
		if n == 3 {
			h.Apply(t, apidbtest.Status(id, 5, jobstate.Completed, apidbtest.OfAttempt(2)))
			all = append([]string{jobevent.StatusID(id, 5)}, all...)
		}
	}
	for _, status := range []deliverystore.Status{"", deliverystore.Pending} {
		var got []string
		f := deliverystore.Filter{Status: status, Limit: 3}
		for more := true; more; {
			var found []deliverystore.Delivery
			var err error
			if found, more, err = h.Deliveries.List(t.Context(), apidb.Everyone, f); err != nil {
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
	if found, more, err := h.Deliveries.List(t.Context(), apidb.Everyone, deliverystore.Filter{Status: deliverystore.Failed, Limit: 3}); len(found) > 0 || more || err != nil {
		t.Errorf("got %v, %v", found, err)
	}
	if _, err := h.Deliveries.OfJob(t.Context(), apidb.Everyone, uuid.New(), 1); !errors.Is(err, apidb.ErrNoJob) {
		t.Errorf("got %v", err)
	}
}

// Finished deliveries are deleted with their job, pending ones are not.
func TestAJobTakesItsFinishedDeliveriesAlong(t *testing.T) {
	t.Parallel()
	h := open(t)
	id := h.Accept(t, calling("http://x/")).JobID
	h.Apply(t, apidbtest.Status(id, 2, jobstate.Failed, apidbtest.OfAttempt(1)))
	claimed, err := h.Deliveries.Claim(t.Context(), map[deliverystore.Place]int{{Host: "x"}: 1}, time.Minute)
	if err != nil || len(claimed) != 1 {
		t.Fatalf("got %v, %v", claimed, err)
	}
	if err := h.Deliveries.Settle(t.Context(), claimed[0], deliverystore.Tried{Status: deliverystore.Failed, Error: "no"}); err != nil {
		t.Fatal(err)
	}
	h.Apply(t, apidbtest.Status(id, 5, jobstate.Cancelled, apidbtest.OfAttempt(1)))
	h.Exec(t, "update jobs set updated_at = now() - interval '2 h', created_at = now() - interval '2 h'")
	walked, err := h.Statuses.ExpireJobs(t.Context(), time.Now().Add(time.Hour), statusstore.Ages{Cancelled: time.Second}, uuid.Nil, 10)
	if err != nil || walked.Gone != 1 {
		t.Fatalf("got %+v, %v", walked, err)
	}
	if got := h.versions(t, id); !slices.Equal(got, []int64{5}) {
		t.Errorf("left are %v", got)
	}
}
