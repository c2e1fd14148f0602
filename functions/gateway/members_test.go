package gateway_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/google/uuid"

	"github.com/jobweaver/jobweaver/shared/jobstate"
)

func TestEachMemberOfARequestHasASample(t *testing.T) {
	t.Parallel()
	schemas, samples := loadContract(t).Components.Schemas, loadSamples(t)
	given := map[string][]map[string]any{
		"BatchRequest": samples.Batches, "FlowRequest": samples.Flows, "ScheduleRequest": samples.Schedules,
		"AlertRequest":   samples.Alerts,
		"ControlRequest": samples.Controls, "QueueRequest": samples.Queues,
	}
	for _, name := range jobSchemas {
		for _, job := range samples.Jobs {
			given[name] = append(given[name], without(schemas[name], job))
		}
	}
	for _, job := range samples.Flows[0]["jobs"].(map[string]any) {
		if job, is := job.(map[string]any); is {
			given["FlowJobRequest"] = append(given["FlowJobRequest"], job)
		}
	}
	for name, requests := range given {
		members, named := map[string]bool{}, map[string]bool{}
		membersAt(schemas[name], name, members)
		for _, request := range requests {
			namedAt(schemas[name], any(request), name, named)
		}
		for _, path := range slices.Sorted(maps.Keys(members)) {
			if !named[path] && !slices.Contains(neverNamed(schemas[name], name), path) {
				t.Errorf("no sample has %s with another value than its default: add one to testdata/members.json", path)
			}
		}
	}
	job := slices.Sorted(maps.Keys(without(schemas["JobRequest"], anyOf(schemas["JobRequest"]), "jobId")))
	if again := slices.Sorted(maps.Keys(partsOf(schemas["RunAgainRequest"]))); !slices.Equal(again, job) {
		t.Errorf("run-again can change %v, of %v", again, job)
	}
}

// neverNamed returns the members of a job that the schema of a job elsewhere refuses.
func neverNamed(schema *openapi3.SchemaRef, at string) (paths []string) {
	left := without(schema, anyOf(schema))
	all := map[string]bool{}
	membersAt(schema, at, all)
	for path := range all {
		name, _, _ := strings.Cut(strings.TrimPrefix(path, at+"."), ".")
		if _, may := left[name]; !may {
			paths = append(paths, path)
		}
	}
	return paths
}

// anyOf returns an object with all members of a schema.
func anyOf(schema *openapi3.SchemaRef) map[string]any {
	object := map[string]any{}
	for name := range partsOf(schema) {
		object[name] = nil
	}
	return object
}

// notRepeated are the members that a run-again drops, by the sentences of the contract that name them.
var notRepeated = map[string][]string{
	"The new job does not take over idempotencyKey, jobId, runAt, delayMs, expiresAt, after and onDependencyFailure: it runs at once unless the body sets another time.": {
		"idempotencyKey", "jobId", "runAt", "delayMs", "expiresAt", "after", "onDependencyFailure",
	},
	"Nor does it take over batchId, unique and debounce, since it is a job of its own.": {"batchId", "unique", "debounce"},
}

func TestTheContractNamesWhatARunAgainDropsAndWhatIsShownInAnotherForm(t *testing.T) {
	t.Parallel()
	body, err := os.ReadFile("openapi.yaml")
	if err != nil {
		t.Fatal(err)
	}
	contract := strings.Join(strings.Fields(string(body)), " ")
	sentences := slices.Collect(maps.Keys(notRepeated))
	for _, form := range forms {
		sentences = append(sentences, form.sentence)
	}
	for _, sentence := range sentences {
		if !strings.Contains(contract, sentence) {
			t.Errorf("the contract lacks: %s", sentence)
		}
	}
}

// shownJob has the members of a job that its request named, as the tests of the dashboard read them.
type shownJob struct {
	Request map[string]any `json:"request"`
	Job     map[string]any `json:"job"`
}

func TestAJobShowsWhatItsRequestAskedForAndKeepsItWhenItRunsAgainOrChanges(t *testing.T) {
	t.Parallel()
	h := open(t)
	var all []shownJob
	for i, sample := range loadSamples(t).Jobs {
		sent := h.fill(sample)
		id := h.postJSON("/api/jobs", sent).want(http.StatusAccepted).jobID()
		job := h.read("/api/jobs/" + id.String())
		h.shows(fmt.Sprint("job ", i), sent, job)
		all = append(all, shownJob{sample, h.stable(sample, job)})

		h.patch(id, `{"tags": ["edited"]}`).want(http.StatusAccepted)
		h.scheduler(id, 2, jobstate.Pending, changed(1, ""))
		job = h.read("/api/jobs/" + id.String())
		if h.shows(fmt.Sprint("job ", i, " changed"), sent, job, "tags", "delayMs"); !same(job["tags"], []any{"edited"}) {
			t.Errorf("job %d: the tags are %v", i, job["tags"])
		}
		sent["tags"] = []any{"edited"}

		h.scheduler(id, 3, jobstate.Completed, nil) // a singleton lets no other one run
		again := h.post(runAgainPath(id), "").want(http.StatusAccepted).jobID()
		h.shows(fmt.Sprint("job ", i, " again"), sent, h.read("/api/jobs/"+again.String()), slices.Concat(slices.Collect(maps.Values(notRepeated))...)...)
	}
	compareGolden(t, "testdata/members.shown.json", all)
}

// stable returns the part of a job that its request named, with ids and instants that are the same in each run.
func (h *fixture) stable(sample, job map[string]any) map[string]any {
	kept := map[string]any{"jobId": "$id"}
	for name := range partsOf(loadContract(h.t).Components.Schemas["JobRequest"]) {
		if value, has := job[name]; has && name != "jobId" {
			kept[name] = value
		}
	}
	kept["conditions"] = nil
	if named, is := sample["after"].([]any); is {
		kept["after"] = []any{"$job"}
		if of, is := named[0].(map[string]any); is {
			kept["conditions"] = map[string]any{"$job": of["on"]}
		}
	}
	if sample["batchId"] != nil {
		kept["batchId"] = "$batch"
	}
	if sample["jobId"] != nil {
		kept["idempotencyKey"] = "$id"
	}
	if sample["runAt"] == nil && kept["runAt"] != nil {
		kept["runAt"] = "2034-01-01T00:00:00Z"
	}
	return kept
}

func compareGolden(t *testing.T, path string, value any) {
	t.Helper()
	made, err := json.MarshalIndent(value, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	made = append(made, '\n')
	if *update {
		if err := os.WriteFile(path, made, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if kept, err := os.ReadFile(path); err != nil || string(kept) != string(made) {
		t.Errorf("%s is stale, %v: go test ./functions/gateway -run %s -update writes it", path, err, t.Name())
	}
}

// ways are those by which a job is submitted beside POST /api/jobs. Each returns the request and the job.
var ways = map[string]func(h *fixture, schemas openapi3.Schemas, sample map[string]any) (sent, job map[string]any){
	"jobs batch": func(h *fixture, _ openapi3.Schemas, sample map[string]any) (sent, job map[string]any) {
		sent = h.fill(sample)
		var answer struct{ Results []struct{ JobID uuid.UUID } }
		h.postJSON("/api/jobs/batch", map[string]any{"jobs": []any{sent}}).want(http.StatusOK).into(&answer)
		return sent, h.read("/api/jobs/" + answer.Results[0].JobID.String())
	},
	"batches": func(h *fixture, schemas openapi3.Schemas, sample map[string]any) (sent, job map[string]any) {
		sent = without(schemas["JobRequest"], h.fill(sample), "batchId", "debounce")
		var made struct{ BatchID uuid.UUID }
		h.postJSON("/api/batches", map[string]any{"ownerId": "acme", "jobs": []any{sent}}).want(http.StatusCreated).into(&made)
		var page struct{ Jobs []struct{ JobID uuid.UUID } }
		h.get("/api/jobs?batchId=" + made.BatchID.String()).want(http.StatusOK).into(&page)
		return sent, h.read("/api/jobs/" + page.Jobs[0].JobID.String())
	},
	"events": func(h *fixture, schemas openapi3.Schemas, sample map[string]any) (sent, job map[string]any) {
		sent = without(schemas["JobRequest"], h.fill(sample), "jobId", "idempotencyKey") // an event has an identity of its own
		event := map[string]any{
			"specversion": "1.0", "id": uuid.NewString(), "source": "/test", "type": "io.jobweaver.job.submit.v1",
			"datacontenttype": "application/json", "data": sent,
		}
		r := h.post("/events", string(text(h.t, event)), "Content-Type", "application/cloudevents+json").want(http.StatusAccepted)
		return sent, h.read("/api/jobs/" + r.jobID().String())
	},
	"hooks": func(h *fixture, schemas openapi3.Schemas, sample map[string]any) (sent, job map[string]any) {
		sent = without(schemas["ScheduledJob"], sample, "ownerId")
		if payload, is := sent["payload"].(map[string]any); is {
			sent["payload"] = without(&openapi3.SchemaRef{Value: &openapi3.Schema{Properties: openapi3.Schemas{"id": nil, "to": nil}}}, payload) // YAML writes 1.50 as 1.5
		}
		g := openWith(h.t, withHooks(h.t, "hooks:\n- {name: one, signature: header, header: X-Token, secretFiles: [SECRET], job: "+string(text(h.t, sent))+"}\n"))
		id := g.post("/hooks/one", `{}`, "X-Token", hookSecret).want(http.StatusAccepted).jobID()
		return sent, g.read("/api/jobs/" + id.String())
	},
	"schedules": func(h *fixture, schemas openapi3.Schemas, sample map[string]any) (sent, job map[string]any) {
		sent = without(schemas["ScheduledJob"], sample)
		name, owner := "s"+uuid.NewString(), ""
		if sent["ownerId"] != nil {
			owner = "?ownerId=acme"
		}
		h.postJSON("/api/schedules", map[string]any{"name": name, "cron": "@yearly", "job": sent}).want(http.StatusCreated)
		if kept := h.read("/api/schedules/" + name + owner)["job"]; !same(kept, any(sent)) {
			h.t.Errorf("the schedule shows the job as %s, and was sent %s", text(h.t, kept), text(h.t, sent))
		}
		id := h.post("/api/schedules/"+name+"/run"+owner, "").want(http.StatusAccepted).jobID()
		return sent, h.read("/api/jobs/" + id.String())
	},
	"flows": func(h *fixture, schemas openapi3.Schemas, sample map[string]any) (sent, job map[string]any) {
		sent = without(schemas["FlowJobRequest"], sample, "after", "onDependencyFailure")
		if of, is := sent["singleton"].(map[string]any); is {
			sent["singleton"] = map[string]any{"key": of["key"], "else": "queue"}
		}
		made := h.flow(string(text(h.t, map[string]any{"ownerId": "acme", "jobs": map[string]any{"a": sent}})))
		h.shows("the first run of a flow", sent, h.read("/api/jobs/"+made.Jobs["a"].String()))
		h.scheduler(made.Jobs["a"], 1, jobstate.Failed, nil)
		h.sweep()
		h.post("/api/flows/"+made.FlowID.String()+"/retry", `{"all": true}`).want(http.StatusAccepted)
		again := h.readFlow(made.FlowID, "").Jobs["a"].JobID
		if again == made.Jobs["a"] {
			h.t.Error("the retry of the flow has no new job")
		}
		return without(schemas["FlowJobRequest"], sent, "delayMs"), h.read("/api/jobs/" + again.String()) // counted from the first submit
	},
}

func TestAJobIsTheSameByWhateverWayItIsSubmitted(t *testing.T) {
	t.Parallel()
	schemas, samples := loadContract(t).Components.Schemas, loadSamples(t)
	for way, submit := range ways {
		t.Run(way, func(t *testing.T) {
			t.Parallel()
			h := open(t)
			for i, sample := range samples.Jobs {
				sent, job := submit(h, schemas, sample)
				h.shows(fmt.Sprint(way, ", job ", i), sent, job)
			}
		})
	}
}

func TestABatchShowsWhatItsRequestAskedFor(t *testing.T) {
	t.Parallel()
	h := open(t)
	schemas, samples := loadContract(t).Components.Schemas, loadSamples(t)
	for i, job := range samples.Jobs {
		by := map[string]any{"$job": without(schemas["FollowUp"], job), "$jobs": map[string]any{"jobType": "MAIL", "payload": json.Number("1")}}
		sent := replaced(samples.Batches[0], by).(map[string]any)
		sent["idempotencyKey"] = fmt.Sprint(sent["idempotencyKey"], i)
		var made struct{ BatchID uuid.UUID }
		h.postJSON("/api/batches", sent).want(http.StatusCreated).into(&made)
		got := h.read("/api/batches/" + made.BatchID.String())
		if h.shows("batch", sent, got, "jobs", "closed"); got["closedAt"] == nil || got["total"] != json.Number("1") {
			t.Errorf("it is %s", text(t, got))
		}
	}
}

func TestAFlowShowsWhatItsRequestAskedFor(t *testing.T) {
	t.Parallel()
	h := open(t)
	schemas, samples := loadContract(t).Components.Schemas, loadSamples(t)
	before := h.submit(with(`"ownerId": "acme"`)).String()
	for i, job := range samples.Jobs {
		sent := replaced(samples.Flows[0], map[string]any{"$job": without(schemas["FollowUp"], job), "$before": before}).(map[string]any)
		sent["idempotencyKey"] = fmt.Sprint(sent["idempotencyKey"], i)
		jobs := sent["jobs"].(map[string]any)
		jobs["list"] = map[string]any{"jobType": "MAIL", "payload": json.Number("1")}
		made := h.flow(string(text(t, sent)))
		h.shows("flow", sent, h.read("/api/flows/"+made.FlowID.String()), "jobs")
		graph := h.readFlow(made.FlowID, "").Jobs
		for name, of := range jobs {
			of := of.(map[string]any)
			h.shows("flow job "+name, of, h.read("/api/jobs/"+made.Jobs[name].String()), "after")
			var edges []any
			for _, edge := range graph[name].After {
				switch {
				case edge.Name == "":
					edges = append(edges, map[string]any{"jobId": edge.JobID.String(), "on": edge.On})
				case edge.On == "completed":
					edges = append(edges, edge.Name)
				default:
					edges = append(edges, map[string]any{"name": edge.Name, "on": edge.On})
				}
			}
			if after, _ := of["after"].([]any); !same(after, edges) {
				t.Errorf("%s is after %s, and was sent as %s", name, text(t, edges), text(t, after))
			}
		}
	}
}

func TestAScheduleAControlAndAQueueShowWhatTheirRequestAskedForAndKeepItWhenAnotherPartChanges(t *testing.T) {
	t.Parallel()
	h := open(t)
	samples := loadSamples(t)
	for _, sample := range samples.Schedules {
		sent := replaced(sample, map[string]any{"$job": without(loadContract(t).Components.Schemas["ScheduledJob"], samples.Jobs[2])}).(map[string]any)
		h.postJSON("/api/schedules", sent).want(http.StatusCreated)
		path := "/api/schedules/" + sent["name"].(string)
		h.shows("schedule", sent, h.read(path))
		changed := without(loadContract(t).Components.Schemas["ScheduleRequest"], h.read(path))
		maps.DeleteFunc(changed, func(_ string, value any) bool { return value == nil })
		changed["cron"] = "0 4 * * *"
		h.do(http.MethodPut, path, string(text(t, changed)), "Content-Type", "application/json").want(http.StatusOK)
		h.shows("schedule with another cron", sent, h.read(path), "cron")
		for verb, paused := range map[string]bool{"/resume": false, "/pause": true} {
			h.post(path+verb, "").want(http.StatusOK)
			if got := h.read(path); got["paused"] != paused {
				t.Errorf("after %s it is %s", verb, text(t, got))
			}
			h.shows("schedule after "+verb, sent, h.read(path), "paused", "cron")
		}
	}
	for i, sent := range samples.Alerts {
		h.postJSON("/api/alerts", sent).want(http.StatusCreated)
		path := fmt.Sprintf("/api/alerts/%s?ownerId=%s", sent["name"], sent["ownerId"])
		h.shows("alert", sent, h.read(path), "to")
		changed := without(loadContract(t).Components.Schemas["AlertRequest"], h.read(path))
		changed["failures"] = json.Number("77")
		h.do(http.MethodPut, path, string(text(t, changed)), "Content-Type", "application/json").want(http.StatusOK)
		h.shows("alert with another threshold", sent, h.read(path), "to", "failures")
		var to string
		h.sql("select destination::text from alerts order by name offset $1 limit 1", &to, i)
		if want := string(text(t, sent["to"])); !sameJSON([]byte(to), sent["to"]) {
			t.Errorf("its destination is %s, not %s", to, want)
		}
	}
	for _, sent := range samples.Controls {
		const path = "/api/controls/fairnessKey/k"
		h.do(http.MethodPut, path, string(text(t, sent)), "Content-Type", "application/json").want(http.StatusOK)
		h.shows("control", sent, h.read(path))
		h.post(path+"/resume", "").want(http.StatusOK)
		h.shows("control resumed", sent, h.read(path), "paused")
	}
	for _, sent := range samples.Queues {
		h.do(http.MethodPut, "/api/queues/reports", string(text(t, sent)), "Content-Type", "application/json").want(http.StatusCreated)
		h.shows("queue", sent, h.read("/api/queues/reports"))
	}
}
