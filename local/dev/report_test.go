package dev_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jobweaver/jobweaver/functions/runjob/handlers"
	"github.com/jobweaver/jobweaver/local/dev"
	"github.com/jobweaver/jobweaver/shared/client"
	"github.com/jobweaver/jobweaver/shared/pgtest"
	"github.com/jobweaver/jobweaver/shared/secret"
)

func TestReportsInTheInstallation(t *testing.T) {
	t.Parallel()
	server, err := pgtest.StartServer(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Stop() })
	queries, slow := filepath.Join(t.TempDir(), "queries.yaml"), t.TempDir()
	err = os.WriteFile(queries, []byte("slow: {sql: 'select i, pg_sleep(0.002) from generate_series(1, 1000000) i'}"), 0o600)
	if err != nil {
		t.Fatal(err)
	}
	report, err := handlers.NewReport(handlers.ReportConfig{
		Bucket: (&url.URL{Scheme: "file", Path: slow}).String(), Queries: queries, DatabaseURL: secret.Of(server.URL()),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(report.Close)
	o := options(t, newFolder(t))
	o.DatabaseURL = server.URL()
	o.Handlers = map[string]handlers.Handler{"SLOW.REPORT": report.Run}
	err = dev.Run(t.Context(), o, func(ctx context.Context, url string) error {
		v := &visit{t: t, api: client.New(url, "")}
		v.aReport(ctx)
		v.aReportThatIsCancelled(ctx)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if left, err := os.ReadDir(slow); err != nil || len(left) > 0 {
		t.Errorf("left %v, %v", left, err)
	}
}

// aReport: a report is stored where its output names it.
func (v *visit) aReport(ctx context.Context) {
	for _, format := range []string{"csv", "xlsx", "pdf", "html"} {
		job := v.end(ctx, v.submit(ctx, "REPORT", fmt.Sprintf(
			`{"title": "T", "format": %q, "rows": [{"a": 1.5}, {"a": 2}], "columns": [{"name": "a", "total": "sum"}]}`, format), ""))
		var out struct {
			Location, SHA256 string
			Size, Rows       int
		}
		if err := json.Unmarshal(job.Output, &out); err != nil || job.Status != "COMPLETED" {
			v.t.Errorf("%s: %s", format, job.Raw)
			continue
		}
		at, err := url.Parse(out.Location)
		if err != nil {
			v.t.Fatal(err)
		}
		text, err := os.ReadFile(at.Path)
		if sum := sha256.Sum256(text); err != nil || len(text) != out.Size || hex.EncodeToString(sum[:]) != out.SHA256 || out.Rows != 2 {
			v.t.Errorf("%s: %v, %+v", format, err, out)
		}
	}
}

// aReportThatIsCancelled has reported progress, and leaves no file.
func (v *visit) aReportThatIsCancelled(ctx context.Context) {
	id := v.submit(ctx, "SLOW.REPORT", `{"title": "T", "format": "csv", "query": "slow"}`, "")
	job := v.until(ctx, id, "its progress is shown", func(j *client.Job) bool { return j.Progress != nil })
	if p := *job.Progress; p.Percent != 0 || !strings.HasSuffix(p.Message, " rows") {
		v.t.Errorf("progress %+v", p)
	}
	if _, err := v.api.Command(ctx, id, "cancel"); err != nil {
		v.t.Error(err)
	}
	if job := v.end(ctx, id); job.Status != "CANCELLED" {
		v.t.Errorf("ended %s: %s", job.Status, job.Raw)
	}
}
