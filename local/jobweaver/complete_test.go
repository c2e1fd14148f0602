package main

import (
	"strings"
	"testing"

	"github.com/jobweaver/jobweaver/local/jobweaver/cli"
)

// TAB once completed the names of files for every argument.
func TestCompletionOffersExistingNames(t *testing.T) {
	answers := map[string]string{
		"GET /api/job-types": `{"jobTypes":[{"name":"EMAIL"},{"name":"REPORT"}]}`,
		"GET /api/queues":    `{"queues":[{"queue":"default"},{"queue":"slow"}]}`,
		"GET /api/schedules": `{"schedules":[{"name":"nightly"}]}`,
		"GET /api/alerts":    `{"alerts":[{"name":"charges"}]}`,
		"GET /api/rejected":  `{"rejected":[{"id":"r1","function":"ingest","topic":"job-created","partition":1,"offset":7,"reason":"why"},{"id":"r2","function":"ingest","topic":"run-job"}]}`,
		"GET /api/controls":  `{"controls":[{"kind":"type","name":"OLD"},{"kind":"owner","name":"acme"},{"kind":"queue","name":"slow"}]}`,
	}
	const noFiles, files = ":4\n", ":0\n"
	for args, want := range map[string]string{
		"get ":                      noFiles,
		"list --status ":            strings.Join(cli.Statuses, "\n") + "\n" + noFiles,
		"list -o ":                  "text\tfor people\njson\tthe answer of the API\nyaml\tthe same as YAML\nname\tids alone, one a line\n" + noFiles,
		"limit ":                    "queue\ntype\nowner\nfairnessKey\n" + noFiles,
		"limit type ":               "EMAIL\nOLD\nREPORT\n" + noFiles,
		"pause queue ":              "default\nslow\n" + noFiles,
		"resume owner ":             "acme\n" + noFiles,
		"resume owner x ":           noFiles,
		"submit --type ":            "EMAIL\nREPORT\n" + noFiles,
		"cancel --queue ":           "default\nslow\n" + noFiles,
		"queue remove ":             "default\nslow\n" + noFiles,
		"schedules get ":            "nightly\n" + noFiles,
		"alerts test ":              "charges\n" + noFiles,
		"schedules get n ":          noFiles,
		"rejected show ":            "r1\tjob-created/1@7 why\nr2\trun-job (over HTTP)\n" + noFiles,
		"rejected redrive --topic ": "job-created\nrun-job\n" + noFiles,
		"rejected list --function ": "ingest\n" + noFiles,
		"types ":                    "EMAIL\nREPORT\n" + noFiles,
		"submit ":                   files,
	} {
		newGateway(t, answers)
		out, err := run(t, "", append([]string{"__complete"}, strings.Split(args, " ")...)...)
		out, _, _ = strings.Cut(out, "Completion ended")
		if err != nil || out != want {
			t.Errorf("%s<TAB>: %q, %v", args, out, err)
		}
	}
	g := newGateway(t, nil)
	g.Close()
	if out, err := run(t, "", "__complete", "types", ""); err != nil || !strings.HasPrefix(out, noFiles) {
		t.Errorf("without a gateway: %q, %v", out, err)
	}
}
