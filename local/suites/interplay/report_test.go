package interplay

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"github.com/jobweaver/jobweaver/shared/client"
)

// reportType is the type whose jobs leave a file behind.
const reportType = "REPORT"

// Report is the file that the output of a completed job names, as it was found.
type Report struct {
	Text   string `json:"text"`
	Digest string `json:"digest"`
	Wrong  string `json:"wrong,omitempty"` // why it could not be read
}

func (i *Installation) reports() string { return filepath.Join(i.dir, "reports") }

func reportPayload(j Job) map[string]any {
	return map[string]any{"title": j.Name, "format": "csv", "columns": []any{map[string]any{"name": "name"}}, "rows": [][]string{{j.Name}}}
}

type reportOutput struct {
	Location, SHA256 string
	Rows             int
}

// collectReport reads the file of a completed job.
func (x *run) collectReport(j *client.Job) {
	var out reportOutput
	if j.JobType != reportType || j.Status != client.Completed {
		return
	}
	found := &Report{}
	x.rec.Reports[j.JobID] = found
	if err := json.Unmarshal(j.Output, &out); err != nil {
		found.Wrong = err.Error()
		return
	}
	at, err := url.Parse(out.Location)
	if err != nil {
		found.Wrong = err.Error()
		return
	}
	text, err := os.ReadFile(at.Path)
	if err != nil {
		found.Wrong = err.Error()
		return
	}
	sum := sha256.Sum256(text)
	found.Text, found.Digest = string(text), hex.EncodeToString(sum[:])
}

var reportRules = []Rule{{
	"reported", "Each attempt writes a file of its own, which appears only when it is complete.", "docs/job-types.md, REPORT",
	func(f *facts, found func(_, _, _ string)) {
		f.each(func(j *client.Job) {
			r := f.Reports[j.JobID]
			if j.JobType != reportType || j.Status != client.Completed {
				return
			}
			var out reportOutput
			if err := json.Unmarshal(j.Output, &out); err != nil || r == nil {
				found(f.name(j.JobID), "an output with the place of its file", string(j.Output))
				return
			}
			name := nameIn(j.Payload)
			switch suffix := fmt.Sprintf("/%s/%d.csv", j.JobID, j.Attempt); {
			case r.Wrong != "":
				found(f.name(j.JobID), "the file at "+out.Location, r.Wrong)
			case r.Digest != out.SHA256 || out.Rows != 1 || !strings.Contains(r.Text, name):
				found(f.name(j.JobID), fmt.Sprintf("the one row %s, and the digest %s", name, out.SHA256), r.Text+" "+r.Digest)
			case !strings.HasSuffix(out.Location, suffix):
				found(f.name(j.JobID), "the file of its last attempt, "+suffix, out.Location)
			}
		})
	},
}}
