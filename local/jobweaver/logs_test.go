package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// Only the last page of a long log was once shown, without a hint.
func TestLogsPrintsAllPagesInOrder(t *testing.T) {
	pages := map[string][2]string{"": {"[3,4]", `"p2"`}, "p2": {"[2]", `"p1"`}, "p1": {"[0,1]", "null"}}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		page, ok := pages[r.URL.Query().Get("cursor")]
		if !ok || r.URL.Query().Get("attempt") != "2" {
			t.Errorf("asked %s", r.URL)
		}
		text := strings.NewReplacer("0", "{N0}", "1", "{N1}", "2", "{N2}", "3", "{N3}", "4", "{N4}").Replace(page[0])
		text = strings.ReplaceAll(strings.ReplaceAll(text, "{N", `{"attempt":2,"at":"2026-01-02T03:04:05Z","level":"INFO","text":"line `), "}", `"}`)
		fmt.Fprintf(w, `{"jobId":"j1","logs":%s,"nextCursor":%s}`, text, page[1])
	}))
	t.Cleanup(server.Close)
	out, err := run(t, "", "logs", "j1", "--attempt", "2", "--url", server.URL)
	var lines []string
	for text := range strings.Lines(out) {
		_, text, _ = strings.Cut(text, "line ")
		lines = append(lines, text)
	}
	if err != nil || strings.Join(lines, "") != "0\n1\n2\n3\n4\n" {
		t.Errorf("%v, printed %s", err, out)
	}
	out, err = run(t, "", "logs", "j1", "--attempt", "2", "--url", server.URL, "-o", "json")
	if err != nil || strings.Count(out, `"text": "line `) != 5 || !strings.Contains(out, `"nextCursor": null`) {
		t.Errorf("%v, printed %s", err, out)
	}
}
