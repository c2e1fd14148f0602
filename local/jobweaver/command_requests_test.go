package main

import (
	"strings"
	"testing"

	"github.com/jobweaver/jobweaver/local/jobweaver/cli"
)

func TestEachCommandSendsOneRequest(t *testing.T) {
	t.Setenv("JOBWEAVER_CALLBACK_SECRET", "whsec_x")
	answers := map[string]string{}
	for _, asked := range []string{
		"POST /api/jobs/j1/cancel", "POST /api/jobs/j1/reschedule", "DELETE /api/jobs/j1", "PATCH /api/jobs/j1",
	} {
		answers[asked] = `{"jobId":"j1","command":3}`
	}
	operation := `{"operationId":"o1","command":"retry","status":"COMPLETED","createdAt":"2026-01-02T03:04:05Z",
		"finishedAt":"2026-01-02T03:04:06Z","progress":{"matched":5,"asked":4,"applied":3,"refused":1,"skipped":1},
		"reasons":[{"reason":"the job is \u001b[31mRUNNING","jobs":1}]}`
	answers["POST /api/operations"], answers["GET /api/operations/o1"] = operation, operation
	answers["POST /api/operations/o1/abort"] = operation
	answers["GET /api/operations"] = `{"operations":[` + operation + `],"nextCursor":"c"}`
	control := `{"kind":"type","name":"A","paused":true,"maxRunning":5,"startsPerSecond":null,"applied":true}`
	for _, asked := range []string{
		"GET /api/controls/type/A", "PUT /api/controls/type/A", "GET /api/controls/fairnessKey/acme",
		"PUT /api/controls/fairnessKey/acme", "POST /api/controls/type/A/pause",
		"POST /api/controls/queue/default/resume",
	} {
		answers[asked] = control
	}
	answers["GET /api/controls"] = `{"controls":[]}`
	answers["GET /api/jobs/dead"] = `{"jobs":[],"nextCursor":null}`
	answers["GET /api/jobs/dead/groups"] = `{"groups":[{"jobType":"A","errorCode":null,"jobs":7,"new":true,"hours":[1,2],"dayBefore":5,
		"firstFailedAt":"2026-11-22T08:00:00Z","lastFailedAt":"2026-11-22T08:00:00Z","example":{"jobId":"j1","message":"no address"}}]}`
	schedule := `{"name":"s","cron":"@daily","timeZone":"UTC","overlap":"allow","missed":"one","upcoming":["2026-01-02T03:04:05Z"]}`
	for _, asked := range []string{
		"POST /api/schedules", "PUT /api/schedules/s", "GET /api/schedules/s", "POST /api/schedules/s/pause",
	} {
		answers[asked] = schedule
	}
	answers["GET /api/schedules"] = `{"schedules":[` + schedule + `]}`
	answers["POST /api/schedules/s/run"], answers["DELETE /api/schedules/s"] = `{"jobId":"j9"}`, ""
	answers["GET /api/schedules/s/ticks"] = `{"ticks":[{"at":"2026-01-02T03:04:05Z","outcome":"skipped","reason":"why"}]}`
	charges := `{"name":"a","jobType":"CHARGE","failures":10,"percent":20,"windowMinutes":5,"quietMinutes":60,"paused":false,
		"state":"FIRING","failed":12,"ended":40,"to":{"slack":"https://hooks.example/…"}}`
	for _, asked := range []string{
		"POST /api/alerts", "PUT /api/alerts/a", "GET /api/alerts/a", "POST /api/alerts/a/pause",
	} {
		answers[asked] = charges
	}
	answers["GET /api/alerts"] = `{"alerts":[` + charges + `]}`
	answers["POST /api/alerts/a/test"], answers["DELETE /api/alerts/a"] = `{"jobId":"j9"}`, ""
	answers["GET /api/alerts/a/notices"] = `{"notices":[{"at":"2026-01-02T03:04:05Z","state":"RESOLVED","failed":1,"ended":9,"jobId":"j9"}]}`
	answers["POST /api/jobs/callback"] = `{"jobId":"j1","attempt":2}`
	answers["GET /api/workers"] = `{"workers":[{"workerId":"w1","live":true,"slots":12,"busy":3,"rate":1.25,"queues":["default"]}]}`
	reports := `{"queue":"reports","origin":"created","state":"REMOVING","workers":"pull","liveWorkers":2,"waiting":7,"createdBy":"me\u001b[31m"}`
	answers["GET /api/queues"] = `{"queues":[` + reports + `]}`
	for _, asked := range []string{"GET /api/queues/reports", "PUT /api/queues/reports", "DELETE /api/queues/reports"} {
		answers[asked] = reports
	}
	answers["PUT /api/workers/w1/drain"] = `{"workerId":"w1","draining":true,"applied":true}`
	answers["DELETE /api/workers/w1/drain"] = `{"workerId":"w1","draining":false,"applied":false}`
	answers["GET /api/stats"] = `{"types":[{"jobType":"A","jobs":{"PENDING":7}}],"oldestWaiting":{"jobId":"j7","ageMs":1500},
		"throughput":{"perSecond":{"1m":{"completed":2.5}}},"latency":{"5m":{"run":{"p50Ms":1,"p95Ms":2,"p99Ms":3}}}}`
	answers["GET /api/lag"] = `{"topics":[{"function":"outcome","topic":"job-completed\u001b[31m","records":12,"members":3}]}`
	answers["GET /api/jobs/j1/logs"] = `{"logs":[{"attempt":2,"at":"2026-01-02T03:04:05Z","level":"INFO","text":"hi"}]}`
	mail := `{"name":"MAIL","workers":2,"queues":["default"],"description":"Sends.","schema":{"type":"object"}}`
	answers["GET /api/job-types"] = `{"jobTypes":[` + mail + `],"acceptsAny":true}`
	answers["GET /api/job-types/MAIL"] = mail
	delivery := `{"jobId":"j1","version":3,"jobStatus":"FAILED","url":"https://example.org/\u001b[31mx","status":"PENDING","tries":2,"lastAnswer":503}`
	answers["GET /api/audit"] = `{"entries":[{"id":"7","at":"2026-11-22T08:00:00Z","ownerId":"acme","actor":"key:k1",` +
		`"action":"job.cancel","resource":null,"jobIds":["j1"],"remoteAddr":"10.0.0.1"}],"nextCursor":"7"}`
	answers["GET /api/jobs/j1/deliveries"] = `{"deliveries":[` + delivery + `]}`
	answers["GET /api/deliveries"] = `{"deliveries":[` + delivery + `],"nextCursor":"j1.v3"}`
	answers["POST /api/jobs/j1/deliveries/3/retry"] = delivery
	answers["POST /api/jobs"], answers["GET /api/jobs"] = `{"jobId":"j1"}`, `{"jobs":[{"jobId":"j1"}]}`
	answers["POST /api/jobs/j1/run-again"] = `{"jobId":"j2"}`
	for args, c := range map[string]struct{ asked, body, printed string }{
		"change j1 --priority 5 --delay 1m --set expiresAt=null": {
			"PATCH /api/jobs/j1", `{"delayMs":60000,"expiresAt":null,"priority":5}`, "change of j1 is command 3",
		},
		"change j1 -":              {"PATCH /api/jobs/j1", `{"jobType":"A"}`, "command 3"},
		"run-again j1":             {"POST /api/jobs/j1/run-again", `{}`, "j2"},
		"run-again j1 -":           {"POST /api/jobs/j1/run-again", `{"jobType":"A"}`, "j2"},
		"run-again j1 --payload -": {"POST /api/jobs/j1/run-again", `{"payload":{"jobType":"A"}}`, "j2"},
		`run-again j1 --set payload.to=a@b --set payload.n={"x":1} --set tags=null --priority 5 --retries 0`: {
			"POST /api/jobs/j1/run-again", `{"maxRetryCount":0,"payload":{"n":{"x":1},"to":"a@b"},"priority":5,"tags":null}`, "j2",
		},
		"types":      {"GET /api/job-types", "", "any other type is accepted"},
		"types MAIL": {"GET /api/job-types/MAIL", "", "  \"type\": \"object\"\n}"},
		"submit --type A --callback-url http://x/":   {"POST /api/jobs", `{"callbackUrl":"http://x/","jobType":"A","maxRetryCount":3,"payload":{},"priority":0}`, "j1"},
		"audit --job j1 --actor key:k1":              {"GET /api/audit?actor=key%3Ak1&jobId=j1", "", "key:k1"},
		"deliveries get j1":                          {"GET /api/jobs/j1/deliveries", "", "503"},
		"deliveries list --status PENDING --limit 1": {"GET /api/deliveries?limit=1&status=PENDING", "", "more: --cursor j1.v3"},
		"deliveries retry j1 3":                      {"POST /api/jobs/j1/deliveries/3/retry", "", "PENDING"},
		"queue list":                                 {"GET /api/queues", "", "reports  created  REMOVING  pull"},
		"queue list -o name":                         {"GET /api/queues", "", "reports"},
		"queue get reports":                          {"GET /api/queues/reports", "", "REMOVING"},
		"queue create reports":                       {"PUT /api/queues/reports", "{}", "created"},
		"queue create reports --workers pull":        {"PUT /api/queues/reports", `{"workers":"pull"}`, "pull"},
		"queue remove reports":                       {"DELETE /api/queues/reports", "", "REMOVING"},
		"queue remove reports --drain":               {"DELETE /api/queues/reports?drain=true", "", "REMOVING"},
		"cancel j1":                                  {"POST /api/jobs/j1/cancel", "", "cancel of j1 is command 3"},
		"delete j1":                                  {"DELETE /api/jobs/j1", "", "delete of j1 is command 3"},
		"reschedule j1 --at 2026-01-02T03:04:05Z":    {"POST /api/jobs/j1/reschedule", `{"runAt":"2026-01-02T03:04:05Z"}`, "command 3"},
		"callback j1 2 completed":                    {"POST /api/jobs/callback", `{"attempt":2,"jobId":"j1","status":"COMPLETED"}`, "attempt 2 of j1"},
		`callback j1 2 completed {"shipment":17}`: {
			"POST /api/jobs/callback", `{"attempt":2,"jobId":"j1","output":{"shipment":17},"status":"COMPLETED"}`, "attempt 2 of j1",
		},
		"callback j1 2 failed --final --code A --message m": {
			"POST /api/jobs/callback", `{"attempt":2,"errorCode":"A","jobId":"j1","message":"m","retryable":false,"status":"FAILED"}`, "taken",
		},
		"callback j1 2 progress 40": {
			"POST /api/jobs/callback", `{"attempt":2,"jobId":"j1","progress":{"percent":40},"status":"PROGRESS"}`, "taken",
		},
		"cancel j1 j2":                                                               {"POST /api/operations", `{"command":"cancel","jobIds":["j1","j2"]}`, "o1"},
		"retry --status FAILED --type A":                                             {"POST /api/operations", `{"command":"retry","filter":{"status":["FAILED"],"type":"A"}}`, "skipped 1: the job is"},
		"cancel --ordering-key k --wait":                                             {"GET /api/operations/o1?wait=30000ms", "", "COMPLETED"},
		"dead redrive --yes":                                                         {"POST /api/operations", `{"command":"retry","filter":{"status":["FAILED"]}}`, "o1"},
		"dead redrive --all --yes":                                                   {"POST /api/operations", `{"command":"retry","filter":{"status":["FAILED"]}}`, "o1"},
		"dead redrive --type A":                                                      {"POST /api/operations", `{"command":"retry","filter":{"status":["FAILED"],"type":"A"}}`, "o1"},
		"list --search refused --ordering-key k":                                     {"GET /api/jobs?orderingKey=k&q=refused", "", "j1"},
		"dead --search refused":                                                      {"GET /api/jobs/dead?q=refused", "", "no jobs"},
		"list --status failed":                                                       {"GET /api/jobs?status=FAILED", "", "j1"},
		"list --status failed,running --status queued --owner acme":                  {"GET /api/jobs?ownerId=acme&status=FAILED&status=RUNNING&status=QUEUED", "", "j1"},
		"list --trace-id T --error-code DEMO --key k":                                {"GET /api/jobs?errorCode=DEMO&idempotencyKey=k&traceId=T", "", "j1"},
		"dead --error-code DEMO --owner acme --cursor c":                             {"GET /api/jobs/dead?cursor=c&errorCode=DEMO&ownerId=acme", "", "no jobs"},
		"retry --error-code DEMO --trace-id T --key k":                               {"POST /api/operations", `{"command":"retry","filter":{"errorCode":"DEMO","idempotencyKey":"k","traceId":"T"}}`, "o1"},
		"retry --search refused --yes":                                               {"POST /api/operations", `{"command":"retry","filter":{"q":"refused"}}`, "o1"},
		"delete --no-error-code --after j1 --yes":                                    {"POST /api/operations", `{"command":"delete","filter":{"after":"j1","noErrorCode":true}}`, "o1"},
		"list --fan-out j1 --status failed":                                          {"GET /api/jobs?fanOutId=j1&status=FAILED", "", "j1"},
		"list --ended-since 2026-11-22T08:00:00Z --ended-until 2026-11-23T08:00:00Z": {"GET /api/jobs?endedSince=2026-11-22T08%3A00%3A00Z&endedUntil=2026-11-23T08%3A00%3A00Z", "", "j1"},
		"retry --ended-until 2026-11-22T08:00:00Z --yes":                             {"POST /api/operations", `{"command":"retry","filter":{"endedUntil":"2026-11-22T08:00:00Z"}}`, "o1"},
		"retry --fan-out j1 --yes":                                                   {"POST /api/operations", `{"command":"retry","filter":{"fanOutId":"j1"}}`, "o1"},
		"list --no-error-code --after j1":                                            {"GET /api/jobs?after=j1&noErrorCode=true", "", "j1"},
		"list --payload order.id:17 --queue q":                                       {"GET /api/jobs?payload=order.id%3A17&queue=q", "", "j1"},
		"retry --payload a:b --yes":                                                  {"POST /api/operations", `{"command":"retry","filter":{"payload":"a:b"}}`, "o1"},
		"cancel --status pending,queued":                                             {"POST /api/operations", `{"command":"cancel","filter":{"status":["PENDING","QUEUED"]}}`, "o1"},
		`submit --type A --owner acme --retry-policy {"type":"fixed","delayMs":5}`: {
			"POST /api/jobs",
			`{"jobType":"A","maxRetryCount":3,"ownerId":"acme","payload":{},"priority":0,"retryPolicy":{"type":"fixed","delayMs":5}}`, "j1",
		},
		"retry --all --yes":       {"POST /api/operations", `{"command":"retry","filter":{"all":true}}`, "o1"},
		"dead --type A --limit 5": {"GET /api/jobs/dead?limit=5&type=A", "", "no jobs"},
		"dead groups":             {"GET /api/jobs/dead/groups?limit=200", "", "A     -           7     3     5 "},
		"dead groups --owner acme --since 2026-11-22T08:00:00Z": {"GET /api/jobs/dead/groups?limit=200&ownerId=acme&since=2026-11-22T08%3A00%3A00Z", "", "no address"},
		"operations list":                              {"GET /api/operations?", "", "more: --cursor c"},
		"operations get o1":                            {"GET /api/operations/o1", "", "o1"},
		"operations abort o1":                          {"POST /api/operations/o1/abort", "", "o1"},
		"pause type A":                                 {"POST /api/controls/type/A/pause", "", "true"},
		"resume queue default":                         {"POST /api/controls/queue/default/resume", "", "true"},
		"limit type A --starts-per-second 2":           {"PUT /api/controls/type/A", `{"maxRunning":5,"paused":true,"startsPerSecond":2}`, "5"},
		"limit fairnessKey acme --weight 3":            {"PUT /api/controls/fairnessKey/acme", `{"maxRunning":5,"paused":true,"startsPerSecond":null,"weight":3}`, "WEIGHT"},
		"limit type A --none":                          {"PUT /api/controls/type/A", `{"maxRunning":null,"paused":true,"startsPerSecond":null}`, "A"},
		"controls":                                     {"GET /api/controls", "", "nothing is paused or limited"},
		"schedules list":                               {"GET /api/schedules", "", "@daily"},
		"schedules create s - --cron @daily":           {"POST /api/schedules", `{"cron":"@daily","job":{"jobType":"A"},"name":"s"}`, "fires "},
		"schedules create s - --cron @daily --replace": {"PUT /api/schedules/s", `{"cron":"@daily","job":{"jobType":"A"}}`, "fires "},
		"schedules pause s --owner acme":               {"POST /api/schedules/s/pause?ownerId=acme", "", "@daily"},
		"schedules run s":                              {"POST /api/schedules/s/run", "", "j9"},
		"schedules delete s":                           {"DELETE /api/schedules/s", "", "s is deleted"},
		"schedules ticks s":                            {"GET /api/schedules/s/ticks", "", "skipped"},
		"alerts list":                                  {"GET /api/alerts", "", "10 in 5 min, 20 %"},
		"alerts create a --slack https://hooks.example/x --type CHARGE --failures 10 --owner acme": {
			"POST /api/alerts", `{"failures":10,"jobType":"CHARGE","name":"a","ownerId":"acme","to":{"slack":"https://hooks.example/x"}}`, "FIRING",
		},
		"alerts create a --email a@b.example,c@d.example --replace": {"PUT /api/alerts/a", `{"to":{"email":["a@b.example","c@d.example"]}}`, "FIRING"},
		"alerts pause a --owner acme":                               {"POST /api/alerts/a/pause?ownerId=acme", "", "CHARGE"},
		"alerts test a":                                             {"POST /api/alerts/a/test", "", "j9"},
		"alerts delete a":                                           {"DELETE /api/alerts/a", "", "a is deleted"},
		"alerts notices a":                                          {"GET /api/alerts/a/notices", "", "RESOLVED"},
		"workers":                                                   {"GET /api/workers", "", "w1"},
		"drain w1":                                                  {"PUT /api/workers/w1/drain", "", "w1 drains"},
		"drain w1 --undo":                                           {"DELETE /api/workers/w1/drain", "", "w1 takes attempts as soon as"},
		"stats --type A":                                            {"GET /api/stats?type=A", "", "run 1ms 2ms 3ms"},
		"lag":                                                       {"GET /api/lag", "", "12       3\n"},
		"logs j1 --attempt 2":                                       {"GET /api/jobs/j1/logs?attempt=2", "", "hi"},
	} {
		g := newGateway(t, answers)
		out, err := run(t, `{"jobType":"A"}`, strings.Fields(args)...)
		if err != nil {
			t.Errorf("%s: %v", args, err)
			continue
		}
		if last := g.asked[len(g.asked)-1]; last != c.asked || string(g.body) != c.body {
			t.Errorf("%s: asked %s with %s", args, last, g.body)
		}
		if !strings.Contains(out, c.printed) || strings.Contains(out, "\x1b") {
			t.Errorf("%s: printed %q", args, out)
		}
	}
}

func TestCommandNeedsAJobOrAFilter(t *testing.T) {
	g := newGateway(t, nil)
	for _, args := range [][]string{
		{"cancel", "--search", "x"}, {"cancel"}, {"cancel", "j1", "--status", "PENDING"}, {"limit", "type", "A"}, {"limit", "type", "A", "--none", "--max-running", "1"},
		{"callback", "j1", "x", "completed"}, {"callback", "j1", "1", "done"}, {"callback", "j1", "1", "progress"}, {"callback", "j1", "1", "failed", "1"},
		{"callback", "j1", "1", "completed", "{"}, {"callback", "j1", "1", "completed"}, {"pause", "queue"}, {"reschedule", "j1", "--in", "soon"}, {"schedules", "create", "s", "-"},
		{"alerts", "create", "a"}, {"alerts", "create", "a", "--slack", "https://x.example", "--failures", "many"}, {"alerts", "create", "a", "--slack", "a", "--webhook", "b"},
		{"reschedule", "j1"}, {"reschedule", "j1", "--at", "2026-01-02T03:04:05Z", "--in", "1m"}, {"reschedule", "--all"}, {"pause", "kind", "A"},
		{"topics", "create", "--run-partitions", "11"}, {"topics", "create", "--run-partitions", "1001"},
		{"queue", "create"}, {"queue", "remove", "a", "b"}, {"queue", "remove", "a", "--timeout", "1s"}, {"drain"}, {"drain", "w1", "--undo", "--wait"}, {"drain", "w1", "--timeout", "1s"}, {"drain", "w1", "--wait", "--timeout", "-1s"},
		{"limit", "kind", "A", "--none"}, {"limit", "type", "A", "--weight", "2"}, {"cancel", "--all", "--type", "A"}, {"cancel", "j1", "--dry-run"}, {"schedules", "create", "s", "-", "--cron", "@daily"},
		{"change"}, {"change", "j1"}, {"change", "j1", "--type", "A"}, {"change", "j1", "-", "--priority", "1"}, {"run-again"}, {"run-again", "j1", "-", "--priority", "1"}, {"run-again", "j1", "--set", "priority"}, {"run-again", "j1", "--set", "a..b=1"},
		{"run-again", "j1", "--set", "payload.a=1", "--payload", "{}"}, {"run-again", "j1", "--set", "a=1", "--set", "a=2"}, {"run-again", "j1", "--watch", "--wait", "1s"},
		{"submit", "-"}, {"submit", "--type", "A", "--retry-policy", "fixed"}, {"get"}, {"get", "j1", "j2"}, {"get", "j1", "--nonsense"}, {"get", "j1", "--wait", "soon"}, {"nonsense"}, {"get", "j1", "-o", "xml"},
		{"cancel", "--all"}, {"retry", "--all"}, {"delete", "--all"}, {"delete", "--status", "FAILED"}, {"dead", "redrive"}, {"dead", "redrive", "--all"},
	} {
		if _, err := run(t, "", args...); cli.CodeOf(err) != cli.ExitUsage {
			t.Errorf("%q: %v", args, err)
		}
	}
	if len(g.asked) > 0 {
		t.Errorf("asked %q", g.asked)
	}
}

func TestDrainWaitsUntilNothingRuns(t *testing.T) {
	const draining = `"workerId":"w1","live":true,"draining":true`
	for name, c := range map[string]struct {
		worker, printed string
		code            int
	}{
		"nothing runs":  {`{` + draining + `,"drained":true}`, "w1 is drained", 0},
		"one runs":      {`{` + draining + `,"attempts":[{}]}`, "", cli.ExitNotYet},
		"it has left":   {`{"workerId":"w2","live":true}`, "w1 has left", 0},
		"it is silent":  {`{"workerId":"w1","draining":true}`, "w1 is silent", 0},
		"it was undone": {`{"workerId":"w1","live":true}`, "", cli.ExitFailed},
	} {
		newGateway(t, map[string]string{
			"PUT /api/workers/w1/drain": `{"workerId":"w1","draining":true,"applied":true}`,
			"GET /api/workers":          `{"workers":[` + c.worker + `]}`,
		})
		out, err := run(t, "", "drain", "w1", "--wait", "--timeout", "50ms")
		if cli.CodeOf(err) != c.code || !strings.Contains(out, c.printed) {
			t.Errorf("%s: %v, printed %q", name, err, out)
		}
	}
}
