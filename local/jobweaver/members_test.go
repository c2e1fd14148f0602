package main

import (
	"bytes"
	"encoding/json"
	"maps"
	"os"
	"reflect"
	"testing"
)

// samplesOf returns requests of the gateway's tests, which hold that they name every member of the contract, and that
// the API shows these members as they were sent.
func samplesOf(t *testing.T, kind string) (samples []map[string]any) {
	t.Helper()
	body, err := os.ReadFile("../../functions/gateway/testdata/members.json")
	if err != nil {
		t.Fatal(err)
	}
	var all map[string][]map[string]any
	decodeExactly(t, body, &all)
	return all[kind]
}

func decodeExactly(t *testing.T, body []byte, into any) {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(body))
	d.UseNumber()
	if err := d.Decode(into); err != nil {
		t.Fatalf("%v: %s", err, body)
	}
}

// sends runs a command on what the API shows, and compares its last request.
func sends(t *testing.T, shown map[string]any, asked string, want map[string]any, answers []string, args ...string) {
	t.Helper()
	text, err := json.Marshal(shown)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	for _, answer := range answers {
		all[answer] = string(text)
	}
	g := newGateway(t, all)
	if out, err := run(t, `{"jobType":"OTHER","payload":12345678901234567890}`, args...); err != nil {
		t.Fatalf("%v: %v, %s", args, err, out)
	}
	var got map[string]any
	decodeExactly(t, g.body, &got)
	if last := g.asked[len(g.asked)-1]; last != asked || !reflect.DeepEqual(got, want) {
		t.Errorf("%v sends %s %v, want %v", args, last, got, want)
	}
}

func TestAChangeOfAScheduleKeepsTheRestOfIt(t *testing.T) {
	for _, sample := range samplesOf(t, "schedules") {
		sample["job"] = samplesOf(t, "jobs")[0]
		name := sample["name"].(string)
		delete(sample, "name")
		shown := maps.Clone(sample)
		shown["name"], shown["nextAt"], shown["createdAt"], shown["lastJobId"] = name, nil, "2026-11-22T08:00:00Z", nil
		change := func(want func(map[string]any), args ...string) {
			t.Helper()
			changed := maps.Clone(sample)
			want(changed)
			path := "/api/schedules/" + name
			sends(t, shown, "PUT "+path+"?ownerId=acme", changed, []string{"GET " + path, "PUT " + path},
				append([]string{"schedules", "change", name, "--owner", "acme"}, args...)...)
		}
		change(func(s map[string]any) { s["cron"] = "@daily" }, "--cron", "@daily")
		change(func(s map[string]any) { delete(s, "endAt"); s["overlap"] = "skip" }, "--end-at", "", "--overlap", "skip")
		change(func(s map[string]any) {
			s["job"] = map[string]any{"jobType": "OTHER", "payload": json.Number("12345678901234567890")}
		}, "-")
	}
}

func TestASchedulesJobThatCannotBeShownIsNotLost(t *testing.T) {
	shown := `{"name":"s","cron":"@daily","timeZone":"UTC","job":null,"sealed":["job"]}`
	g := newGateway(t, map[string]string{"GET /api/schedules/s": shown, "PUT /api/schedules/s": shown})
	if out, err := run(t, "", "schedules", "change", "s", "--cron", "@hourly"); err == nil || len(g.asked) != 1 {
		t.Errorf("it asked %v: %s", g.asked, out)
	}
}

func TestALimitKeepsTheRestOfAControl(t *testing.T) {
	for _, sample := range samplesOf(t, "controls") {
		const path = "/api/controls/fairnessKey/k"
		want := maps.Clone(sample)
		want["maxRunning"] = json.Number("9")
		sends(t, sample, "PUT "+path, want, []string{"GET " + path, "PUT " + path}, "limit", "fairnessKey", "k", "--max-running", "9")
	}
}

func TestAChangeOfAnAlertKeepsTheRestOfIt(t *testing.T) {
	for _, sample := range samplesOf(t, "alerts") {
		name := sample["name"].(string)
		delete(sample, "name")
		delete(sample, "ownerId")
		shown := maps.Clone(sample)
		shown["name"], shown["ownerId"], shown["state"], shown["failed"], shown["firingSince"] = name, "acme", "OK", 1, nil
		change := func(want func(map[string]any), args ...string) {
			t.Helper()
			changed := maps.Clone(sample)
			want(changed)
			path := "/api/alerts/" + name
			sends(t, shown, "PUT "+path+"?ownerId=acme", changed, []string{"GET " + path, "PUT " + path},
				append([]string{"alerts", "change", name, "--owner", "acme"}, args...)...)
		}
		change(func(a map[string]any) { a["failures"] = json.Number("7") }, "--failures", "7")
		change(func(a map[string]any) { delete(a, "percent"); delete(a, "jobType") }, "--percent", "0", "--type", "")
		change(func(a map[string]any) { a["to"] = map[string]any{"webhook": "https://b.example"} }, "--webhook", "https://b.example")
	}
}
