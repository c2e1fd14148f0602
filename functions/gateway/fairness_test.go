package gateway_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/jobweaver/jobweaver/functions/gateway"
	"github.com/jobweaver/jobweaver/shared/apierror"
	"github.com/jobweaver/jobweaver/shared/jobevent"
)

type fairBody struct{ OwnerID, FairnessKey *string }

func (c *client) fairnessKey(id uuid.UUID) string {
	c.t.Helper()
	var job fairBody
	if c.get("/api/jobs/" + id.String()).want(http.StatusOK).into(&job); job.FairnessKey == nil {
		return ""
	}
	return *job.FairnessKey
}

// However a job comes in, its key is stored, shown and published.
func TestAJobHasAFairnessKeyHoweverItComesIn(t *testing.T) {
	t.Parallel()
	h := open(t)
	for more, want := range map[string]struct{ shown, published string }{
		``: {"", ""}, `"ownerId": "acme"`: {"acme", ""}, `"fairnessKey": "f"`: {"f", "f"},
		`"ownerId": "acme", "fairnessKey": "f"`:      {"f", "f"},
		`"ownerId": "acme", "fairnessKey": "acme"`:   {"acme", ""},
		`"idempotencyKey": "k1", "fairnessKey": "f"`: {"f", "f"}, `"orderingKey": "o", "fairnessKey": "f"`: {"f", "f"},
	} {
		body := plainJob
		if more != "" {
			body = with(more)
		}
		id := h.submit(body)
		created, err := jobevent.Decode[jobevent.Created](h.broker.next(t))
		if got := h.fairnessKey(id); err != nil || got != want.shown || created.FairnessKey != want.published {
			t.Errorf("%s: shown %q, published %q, %v; want %+v", more, got, created.FairnessKey, err, want)
		}
	}
	var batch struct{ Results []struct{ JobID uuid.UUID } }
	h.post("/api/jobs/batch", fmt.Sprintf(`{"jobs": [%s, %s, %s]}`, with(`"fairnessKey": "a"`), with(`"fairnessKey": "a"`), with(`"fairnessKey": "a"`))).
		want(http.StatusOK).into(&batch)
	for _, job := range batch.Results {
		if got := h.fairnessKey(job.JobID); got != "a" {
			t.Errorf("of a uniform batch: %q", got)
		}
	}
	h.post("/api/jobs/batch", fmt.Sprintf(`{"jobs": [%s, %s]}`, with(`"fairnessKey": "a"`), with(`"fairnessKey": "b"`))).want(http.StatusOK).into(&batch)
	if a, b := h.fairnessKey(batch.Results[0].JobID), h.fairnessKey(batch.Results[1].JobID); a != "a" || b != "b" {
		t.Errorf("of a mixed batch: %q, %q", a, b)
	}
	r := h.do(http.MethodPost, "/events?jobType=MAIL&fairnessKey=e", `1`, "Ce-Specversion", "1.0", "Ce-Id", "1", "Ce-Source", "/x",
		"Ce-Type", "x", "Content-Type", "application/json").want(http.StatusAccepted)
	if got := h.fairnessKey(r.jobID()); got != "e" {
		t.Errorf("of an event: %q", got)
	}
	again := h.post(runAgainPath(r.jobID()), `{}`).want(http.StatusAccepted).jobID()
	if got := h.fairnessKey(again); got != "e" {
		t.Errorf("run again: %q", got)
	}
	changed := h.post(runAgainPath(again), `{"fairnessKey": null, "ownerId": "acme"}`).want(http.StatusAccepted).jobID()
	if got := h.fairnessKey(changed); got != "acme" {
		t.Errorf("run again with its default: %q", got)
	}
}

// However a job comes in, the wish to keep its build is stored, shown and published.
func TestAJobKeepsItsBuildHoweverItComesIn(t *testing.T) {
	t.Parallel()
	h := open(t)
	shown := func(id uuid.UUID) (body struct{ KeepBuild *bool }) {
		h.get("/api/jobs/" + id.String()).want(http.StatusOK).into(&body)
		return body
	}
	for more, want := range map[string]bool{`"keepBuild": true`: true, `"keepBuild": false`: false, `"idempotencyKey": "k", "keepBuild": true`: true} {
		id := h.submit(with(more))
		created, err := jobevent.Decode[jobevent.Created](h.broker.next(t))
		if got := shown(id).KeepBuild; err != nil || got == nil || *got != want || created.KeepBuild != want {
			t.Errorf("%s: shown %v, published %v, %v", more, got, created.KeepBuild, err)
		}
		again := h.post(runAgainPath(id), `{}`).want(http.StatusAccepted).jobID()
		h.broker.next(t)
		if got := shown(again).KeepBuild; *got != want {
			t.Errorf("%s: run again: %v", more, *got)
		}
	}
	h.post("/api/jobs", with(`"keepBuild": 1`)).wantError(apierror.InvalidJobRequest)
}

func TestTheSameKeyWithAnotherFairnessKeyIsAnotherRequest(t *testing.T) {
	t.Parallel()
	h := open(t)
	h.post("/api/jobs", with(`"idempotencyKey": "k", "fairnessKey": "a"`)).want(http.StatusAccepted)
	h.post("/api/jobs", with(`"idempotencyKey": "k", "fairnessKey": "a"`)).want(http.StatusOK)
	h.post("/api/jobs", with(`"idempotencyKey": "k", "fairnessKey": "b"`)).wantError(apierror.IdempotencyConflict)
}

// With keys of its choice an owner would have many shares.
func TestAnOwnerNamesNoFairnessKeyButItsOwn(t *testing.T) {
	t.Parallel()
	h := openWith(t, func(cfg *gateway.Config) { cfg.Auth = gateway.AuthOn })
	acme, installation := h.as("acme", "operate"), h.as("", "operate")
	const own, foreign = `"fairnessKey": "acme"`, `"fairnessKey": "other"`
	event := func(from *client, key string) *response {
		return from.do(http.MethodPost, "/events?jobType=MAIL&fairnessKey="+key, `1`, "Ce-Specversion", "1.0", "Ce-Id", key, "Ce-Source", "/x",
			"Ce-Type", "x", "Content-Type", "application/json")
	}
	id := acme.post("/api/jobs", with(own)).want(http.StatusAccepted).jobID()
	refused := map[string]*response{
		"a job":       acme.post("/api/jobs", with(foreign)),
		"an event":    event(acme, "other"),
		"a schedule":  acme.put("/api/schedules/s", `{"cron": "@daily", "job": `+with(foreign)+`}`),
		"a new one":   acme.post("/api/schedules", `{"name": "n", "cron": "@daily", "job": `+with(foreign)+`}`),
		"a run again": acme.post(runAgainPath(id), `{`+foreign+`}`),
		"as an admin": h.as("", "admin").do(http.MethodPost, "/api/jobs", with(foreign), "Content-Type", "application/json", "X-Owner-Id", "acme"),
	}
	for name, r := range refused {
		if r.status != http.StatusForbidden || !strings.Contains(string(r.body), "fairnessKey") {
			t.Errorf("%s: %d %s", name, r.status, r.body)
		}
	}
	var batch struct{ Results []struct{ Status int } }
	acme.post("/api/jobs/batch", fmt.Sprintf(`{"jobs": [%s, %s]}`, with(foreign), with(own))).want(http.StatusOK).into(&batch)
	if batch.Results[0].Status != http.StatusForbidden || batch.Results[1].Status != http.StatusAccepted {
		t.Errorf("in a batch: %+v", batch)
	}
	event(acme, "acme").want(http.StatusAccepted)
	acme.put("/api/schedules/s", `{"cron": "@daily", "job": `+with(own)+`}`).want(http.StatusCreated)

	free := installation.post("/api/jobs", with(foreign)).want(http.StatusAccepted).jobID()
	if got := installation.fairnessKey(free); got != "other" {
		t.Errorf("the installation's is of %q", got)
	}
	h.sql("update jobs set fairness_key = 'other' where job_id = $1 returning true", new(bool), id)
	again := acme.post(runAgainPath(id), "").want(http.StatusAccepted).jobID() // its owner chooses nothing
	if got := acme.fairnessKey(again); got != "other" {
		t.Errorf("run again it is of %q", got)
	}
}

func TestAFairnessKeyHasAWeightAndLimits(t *testing.T) {
	t.Parallel()
	h := open(t)
	h.follow()
	weight := func(c controlBody) int {
		if c.Weight == nil {
			return 0
		}
		return *c.Weight
	}
	if none := h.control("GET", "fairnessKey/acme", ""); none.Version != 0 || weight(none) != 1 {
		t.Errorf("an untouched one: %+v", none)
	}
	put := h.control("PUT", "fairnessKey/acme", `{"weight": 5}`)
	if weight(put) != 5 || !put.Applied || put.Paused || put.MaxRunning != nil {
		t.Errorf("put: %+v", put)
	}
	if kept := h.control("GET", "fairnessKey/acme", ""); weight(kept) != 5 || kept.Version != put.Version {
		t.Errorf("once it is applied: %+v", kept)
	}
	if paused := h.control("POST", "fairnessKey/acme/pause", ""); weight(paused) != 5 || !paused.Paused {
		t.Errorf("paused: %+v", paused)
	}
	if even := h.control("PUT", "fairnessKey/acme", `{"weight": 1, "maxRunning": 2}`); weight(even) != 1 || *even.MaxRunning != 2 {
		t.Errorf("of weight 1: %+v", even)
	}
	var list struct{ Controls []controlBody }
	h.control("PUT", "fairnessKey/*", `{"maxRunning": 3}`)
	h.control("PUT", "type/*", `{"startsPerSecond": 3}`)
	h.control("POST", "queue/*/pause", "")
	h.get("/api/controls").want(http.StatusOK).into(&list)
	var listed []string
	for _, c := range list.Controls {
		listed = append(listed, fmt.Sprint(c.Kind, ":", c.Name, weight(c)))
	}
	if got := strings.Join(listed, " "); got != "fairnessKey:*0 fairnessKey:acme1 queue:*0 type:*0" {
		t.Errorf("listed %s", got)
	}
	if gone := h.control("DELETE", "fairnessKey/acme", ""); weight(gone) != 1 || gone.MaxRunning != nil {
		t.Errorf("let go: %+v", gone)
	}
	if none := h.control("GET", "fairnessKey/acme", ""); none.Version != 0 {
		t.Errorf("it is still there: %+v", none)
	}
	for path, body := range map[string][2]string{
		"type/MAIL": {`{"weight": 2}`, "weight"}, "queue/*": {`{"weight": 2}`, "weight"}, "owner/acme": {`{"weight": 1}`, "weight"},
		"fairnessKey/*": {`{"weight": 2}`, "weight"}, "fairnessKey/a": {`{"weight": 101}`, "weight"}, "owner/*": {`{}`, "name"},
		"fairnessKey/%00": {`{}`, "name"}, "fairnesskey/a": {`{}`, "kind"},
	} {
		h.do("PUT", "/api/controls/"+path, body[0], "Content-Type", "application/json").wantError(apierror.InvalidJobRequest, body[1])
	}
	for body, wrong := range map[string]string{`{"paused": true}`: "paused", `{"maxRunning": 0}`: "maxRunning"} {
		h.do("PUT", "/api/controls/fairnessKey/*", body, "Content-Type", "application/json").wantError(apierror.InvalidJobRequest, wrong)
	}
	h.do("POST", "/api/controls/fairnessKey/*/pause", "").wantError(apierror.InvalidJobRequest, "name")
	if r := h.do("PUT", "/api/controls/owner/*", `{}`, "Content-Type", "application/json"); !strings.Contains(string(r.body), "fairnessKey/*") {
		t.Errorf("all owners: %s", r.body)
	}
}

func TestOnlyTheInstallationControlsFairnessKeys(t *testing.T) {
	t.Parallel()
	h := openLocked(t)
	h.follow()
	acme, admin := h.as("acme", "admin"), h.as("", "admin")
	admin.put("/api/controls/fairnessKey/acme", `{"weight": 7}`).want(http.StatusOK)
	admin.put("/api/controls/fairnessKey/other", `{"weight": 9}`).want(http.StatusOK)
	admin.put("/api/controls/owner/acme", `{"maxRunning": 5}`).want(http.StatusOK)
	var own controlBody
	if acme.get("/api/controls/fairnessKey/acme").want(http.StatusOK).into(&own); *own.Weight != 7 {
		t.Errorf("it sees %+v", own)
	}
	var list struct{ Controls []controlBody }
	if acme.get("/api/controls").want(http.StatusOK).into(&list); len(list.Controls) != 2 || list.Controls[0].Kind != "fairnessKey" {
		t.Errorf("it lists %+v", list)
	}
	for _, r := range []*response{
		acme.put("/api/controls/fairnessKey/acme", `{"weight": 8}`), acme.do(http.MethodDelete, "/api/controls/fairnessKey/acme", ""),
		acme.post("/api/controls/fairnessKey/acme/pause", ""), acme.post("/api/controls/fairnessKey/acme/resume", ""),
		acme.get("/api/controls/fairnessKey/other"), acme.get("/api/controls/fairnessKey/*"), acme.put("/api/controls/fairnessKey/*", `{}`),
		h.as("", "operate").put("/api/controls/fairnessKey/acme", `{"weight": 8}`),
	} {
		r.wantError(apierror.Forbidden)
	}
	if admin.get("/api/controls/fairnessKey/acme").want(http.StatusOK).into(&own); *own.Weight != 7 || own.Paused {
		t.Errorf("it was changed: %+v", own)
	}
}

func TestAPendingJobShowsTheControlOfItsFairnessKey(t *testing.T) {
	t.Parallel()
	h := open(t)
	h.follow()
	blocks := func(id uuid.UUID) string {
		var job struct{ BlockedBy []jobevent.Block }
		h.get("/api/jobs/" + id.String()).want(http.StatusOK).into(&job)
		return fmt.Sprint(job.BlockedBy)
	}
	named, owned, neither := h.submit(with(`"ownerId": "acme", "fairnessKey": "f"`)), h.submit(with(`"ownerId": "acme"`)), h.submit(plainJob)
	want := func(of map[uuid.UUID]string) {
		t.Helper()
		for id, want := range of {
			if got := blocks(id); got != want {
				t.Errorf("%q waits for %s, want %s", h.fairnessKey(id), got, want)
			}
		}
	}
	h.control("PUT", "fairnessKey/*", `{"maxRunning": 1}`)
	h.control("PUT", "fairnessKey/f", `{"weight": 2}`) // it limits nothing, and so replaces no limit
	want(map[uuid.UUID]string{named: "[{limit fairnessKey:*}]", owned: "[{limit fairnessKey:*}]", neither: "[]"})
	h.control("PUT", "fairnessKey/f", `{"weight": 2, "paused": true}`)
	h.control("PUT", "fairnessKey/acme", `{"startsPerSecond": 1}`)
	want(map[uuid.UUID]string{named: "[{pause fairnessKey:f}]", owned: "[{limit fairnessKey:acme}]"})
	h.control("PUT", "queue/*", `{"paused": true}`)
	h.control("PUT", "type/*", `{"maxRunning": 1}`)
	want(map[uuid.UUID]string{neither: "[{pause queue:*} {limit type:*}]"})
	h.control("PUT", "queue/default", `{"maxRunning": 9}`)
	want(map[uuid.UUID]string{neither: "[{limit queue:default} {limit type:*}]"})
}
