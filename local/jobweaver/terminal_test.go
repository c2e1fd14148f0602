package main

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode"
)

// Texts of jobs, workers and clients must not control the terminal of the user who reads them.
func TestTextsOfOthersDoNotControlTheTerminal(t *testing.T) {
	const evil = "a\x1b]0;title\a\x1b[2J\x9b31m\u009b2J\u202egnp.exe\u2066\x7f\b\r\x00\U000e0001z"
	text, err := json.Marshal(strings.ToValidUTF8(evil, "?"))
	if err != nil {
		t.Fatal(err)
	}
	answers := map[string]string{}
	for question, answer := range map[string]string{
		"GET /api/jobs/j1": `{"jobId":EVIL,"jobType":EVIL,"queue":EVIL,"ownerId":EVIL,"status":"FAILED","attempt":1,"tags":[EVIL],
			"createdAt":"2026-01-02T03:04:05Z","updatedAt":"2026-01-02T03:04:05Z","lastError":{"errorCode":EVIL,"message":EVIL},
			"output":EVIL,"payload":EVIL,"history":[{"at":"2026-01-02T03:04:05Z","to":"FAILED","by":EVIL,"reason":EVIL}],
			"attempts":[{"attempt":1,"workerId":EVIL,"outcome":"failed","errorCode":EVIL,"message":EVIL}],
			"logs":[{"at":"2026-01-02T03:04:05Z","attempt":1,"level":"INFO","message":EVIL}]}`,
		"GET /api/jobs":         `{"jobs":[{"jobId":EVIL,"jobType":EVIL,"queue":EVIL,"status":"FAILED"}],"nextCursor":EVIL}`,
		"GET /api/jobs/j1/logs": `{"jobId":"j1","logs":[{"at":"2026-01-02T03:04:05Z","attempt":1,"level":EVIL,"message":EVIL}]}`,
		"GET /api/workers":      `{"workers":[{"workerId":EVIL,"queues":[EVIL],"jobTypes":[EVIL]}]}`,
		"GET /api/schedules":    `{"schedules":[{"name":EVIL,"cron":EVIL,"timeZone":EVIL,"ownerId":EVIL}]}`,
		"GET /api/controls":     `{"controls":[{"kind":EVIL,"name":EVIL,"by":EVIL,"paused":true}]}`,
	} {
		answers[question] = strings.ReplaceAll(answer, "EVIL", string(text))
	}
	for _, verb := range []string{
		"get j1", "get j1 -o json", "watch j1", "logs j1", "list", "list -o json", "workers", "workers -o json", "schedules list", "controls",
	} {
		newGateway(t, answers)
		out, err := run(t, "", strings.Fields(verb)...)
		if err != nil {
			out += err.Error()
		}
		if !strings.Contains(out, "gnp.exe") {
			t.Errorf("%s: printed %q", verb, out)
		}
		if at := strings.IndexFunc(out, func(r rune) bool { return r != '\n' && r != '\t' && !unicode.IsPrint(r) }); at >= 0 {
			t.Errorf("%s: printed %q", verb, out[at:])
		}
	}
}
