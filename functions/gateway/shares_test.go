package gateway_test

import (
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"testing"

	"github.com/jobweaver/jobweaver/functions/gateway"
	"github.com/jobweaver/jobweaver/shared/apierror"
)

type sharesBody struct {
	Keys, Waiting, Running int
	Complete               bool
	Shares                 []shareBody
	NextCursor             *string
}

type shareBody struct {
	FairnessKey              string
	Weight, Waiting, Running int
	DueShare, RunningShare   *float64
	Paused                   bool
	MaxRunning               *int
}

const sharesPath = "/api/queues/default/shares"

func (c *client) shares(query string) (body sharesBody) {
	c.t.Helper()
	c.get(sharesPath + query).want(http.StatusOK).into(&body)
	return body
}

// countedAt returns when the shares of a response were counted; empty if it is an error.
func countedAt(r *response) string {
	var body struct{ At string }
	_ = json.Unmarshal(r.body, &body)
	return body.At
}

func keysOf(shares []shareBody) (keys []string) {
	for _, share := range shares {
		keys = append(keys, share.FairnessKey)
	}
	return keys
}

func TestAQueueShowsTheShareOfEachFairnessKey(t *testing.T) {
	t.Parallel()
	h := open(t)
	if got := h.shares(""); got.Keys != 0 || got.Shares == nil || len(got.Shares) > 0 || !got.Complete || got.NextCursor != nil {
		t.Errorf("without jobs: %+v", got)
	}
	h = open(t)
	for key, n := range map[string]int{"a": 3, "B:1": 2, "paused": 1, "full": 1} {
		for range n {
			h.submit(with(`"fairnessKey": "` + key + `"`))
		}
	}
	h.submit(plainJob)
	for name, control := range map[string]string{
		"B%3A1": `{"weight": 4}`, "paused": `{"paused": true, "weight": 100}`, "full": `{"maxRunning": 0}`, "*": `{"maxRunning": 9}`,
	} {
		h.put("/api/controls/fairnessKey/"+name, control).want(http.StatusOK)
	}
	got := h.shares("")
	if got.Keys != 5 || got.Waiting != 8 || got.Running != 0 || !slices.Equal(keysOf(got.Shares), []string{"a", "B:1", "", "full", "paused"}) {
		t.Fatalf("shares: %+v", got)
	}
	for i, want := range []struct {
		due             float64
		weight, waiting int
		paused          bool
	}{{1. / 6, 1, 3, false}, {4. / 6, 4, 2, false}, {1. / 6, 1, 1, false}, {0, 1, 1, true}, {0, 100, 1, true}} {
		share := got.Shares[i]
		if *share.DueShare != want.due || share.Weight != want.weight || share.Waiting != want.waiting || share.Paused != want.paused {
			t.Errorf("share %+v, want %+v", share, want)
		}
	}
	if most := got.Shares[1].MaxRunning; most == nil || *most != 9 {
		t.Error("fairnessKey/* does not limit a key with only a weight")
	}
	if most := got.Shares[2].MaxRunning; most != nil {
		t.Error("fairnessKey/* limits the jobs without a key")
	}
	h.put("/api/controls/fairnessKey/a", `{"weight": 7}`).want(http.StatusOK)
	if got := h.shares("?q=A").Shares; len(got) != 2 || got[0].FairnessKey != "a" || got[0].Weight != 7 || *got[0].DueShare != 7./12 {
		t.Errorf("with q: %+v", got)
	}
	var all []string
	for query := "?limit=2"; ; {
		page := h.shares(query)
		if all = append(all, keysOf(page.Shares)...); page.NextCursor == nil {
			break
		}
		query = "?limit=2&cursor=" + url.QueryEscape(*page.NextCursor)
	}
	if !slices.Equal(all, keysOf(got.Shares)) {
		t.Errorf("on pages: %q", all)
	}
	for query, wrong := range map[string]string{"?cursor=x": "cursor", "?limit=0": "limit", "?q=": "q", "?key=a": "key"} {
		h.get(sharesPath+query).wantError(apierror.InvalidJobRequest, wrong)
	}
	h.get("/api/queues/No_Queue/shares").wantError(apierror.InvalidJobRequest, "queue")
}

func TestAnOwnerSeesOnlyWhatItsOwnJobsWaitFor(t *testing.T) {
	t.Parallel()
	h := openWith(t, func(cfg *gateway.Config) { cfg.Auth = gateway.AuthOn })
	acme, other, admin := h.as("acme", "submit", "read"), h.as("other", "submit", "read"), h.as("", "submit", "read", "admin")
	for _, of := range []*client{acme, other, other} {
		of.post("/api/jobs", plainJob).want(http.StatusAccepted)
	}
	admin.post("/api/jobs", with(`"fairnessKey": "acme"`)).want(http.StatusAccepted)
	if got := acme.shares(""); got.Keys != 1 || got.Waiting != 1 || got.Shares[0].FairnessKey != "acme" || got.Shares[0].DueShare != nil || got.Shares[0].RunningShare != nil {
		t.Errorf("of acme: %+v", got)
	}
	if got := other.shares(""); got.Waiting != 2 || !slices.Equal(keysOf(got.Shares), []string{"other"}) {
		t.Errorf("of other: %+v", got)
	}
	if got := admin.shares(""); got.Waiting != 4 || *got.Shares[0].DueShare != 0.5 {
		t.Errorf("of the installation: %+v", got)
	}
	h.as("acme", "submit").get(sharesPath).wantError(apierror.Forbidden)
}
