package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jobweaver/jobweaver/local/jobweaver/cli"
)

// PowerShell's > writes UTF-16, and its Set-Content a byte order mark.
func TestAFileIsReadHoweverWindowsHasWrittenIt(t *testing.T) {
	const job = `{"jobType":"ü","tags":["a"]}`
	little, big := "\xff\xfe", "\xfe\xff"
	for _, char := range job {
		little += string([]byte{byte(char), byte(char >> 8)})
		big += string([]byte{byte(char >> 8), byte(char)})
	}
	for name, text := range map[string]string{"plain": job, "with a mark": "\ufeff" + job, "UTF-16": little, "UTF-16, big endian": big} {
		file := filepath.Join(t.TempDir(), "job.json")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		for _, from := range []string{file, "-"} {
			g := newGateway(t, map[string]string{"POST /api/jobs": `{"jobId":"j1"}`})
			if out, err := run(t, text, "submit", from); err != nil || string(g.body) != job {
				t.Errorf("%s from %s: sent %q, %v\n%s", name, from, g.body, err, out)
			}
		}
	}
}

func TestATagMayHaveAComma(t *testing.T) {
	g := newGateway(t, map[string]string{"POST /api/jobs": `{"jobId":"j1"}`})
	if out, err := run(t, "", "submit", "--type", "T", "--tag", "a,b", "--tag", "c"); err != nil || !strings.Contains(string(g.body), `["a,b","c"]`) {
		t.Errorf("sent %s, %v\n%s", g.body, err, out)
	}
}

func TestHelpForWhatIsNoCommandFails(t *testing.T) {
	t.Parallel()
	for _, topic := range []string{"bogus", "keys bogus", "get bogus"} {
		if out, err := run(t, "", append([]string{"help"}, strings.Fields(topic)...)...); cli.CodeOf(err) != cli.ExitUsage {
			t.Errorf("help %s: %v\n%s", topic, err, out)
		}
	}
	for topic, want := range map[string]string{"get": "jobweaver get", "keys create": "jobweaver keys create", "": "jobweaver"} {
		if out, err := run(t, "", append([]string{"help"}, strings.Fields(topic)...)...); err != nil || !strings.Contains(out, want) {
			t.Errorf("help %s: %v\n%s", topic, err, out)
		}
	}
}

func TestTheVersionIsPrintedInTheWantedFormat(t *testing.T) {
	t.Parallel()
	for format, want := range map[string]string{"text": "jobweaver ", "json": `"commit": "`, "yaml": "version: "} {
		if out, err := run(t, "", "version", "-o", format); err != nil || !strings.Contains(out, want) {
			t.Errorf("%s: %v, %s", format, err, out)
		}
	}
}
