package handlers_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/csv"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/jobweaver/jobweaver/functions/runjob/handlers"
	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/secret"
)

type reportOutput struct {
	Location, ContentType, SHA256 string
	Size                          int64
	Rows                          int
}

// reporter writes reports into a folder.
type reporter struct {
	*testing.T
	folder     string
	report     *handlers.Report
	progress   []jobevent.Progress
	onProgress func()
	timeout    time.Duration
	owner      string // of the jobs
}

func newReporter(t *testing.T, cfg handlers.ReportConfig) *reporter {
	t.Helper()
	r := &reporter{T: t, folder: filepath.Join(t.TempDir(), "a folder"), onProgress: func() {}, timeout: 10 * time.Minute}
	if cfg.Bucket == "" {
		cfg.Bucket = (&url.URL{Scheme: "file", Path: r.folder}).String()
	}
	var err error
	if r.report, err = handlers.NewReport(cfg); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.report.Close)
	return r
}

func (r *reporter) run(ctx context.Context, payload string) (reportOutput, error) {
	r.Helper()
	run := jobevent.Run{JobID: uuid.New(), OwnerID: r.owner, Attempt: 2, Payload: json.RawMessage(payload), Spec: jobevent.Spec{TimeoutMs: r.timeout.Milliseconds()}}
	a := handlers.NewAttempt(run, uuid.New(), func(slog.Level, string) {}, func(p jobevent.Progress) {
		r.progress = append(r.progress, p)
		r.onProgress()
	})
	result, err := r.report.Run(ctx, a)
	var out reportOutput
	if err != nil {
		return out, err
	}
	if err := json.Unmarshal(result.Output, &out); err != nil {
		r.Fatal(err)
	}
	if r.Failed() || strings.HasPrefix(out.Location, "s3:") {
		return out, nil
	}
	want := (&url.URL{Scheme: "file", Path: filepath.Join(r.folder, run.JobID.String(), "2."+extension(out.Location))}).String()
	if out.Location != want {
		r.Errorf("location %s, want %s", out.Location, want)
	}
	return out, nil
}

func extension(location string) string { return location[strings.LastIndex(location, ".")+1:] }

// text returns the contents of the file, which must match the output.
func (r *reporter) text(out reportOutput) []byte {
	r.Helper()
	u, err := url.Parse(out.Location)
	if err != nil {
		r.Fatal(err)
	}
	text, err := os.ReadFile(u.Path)
	if err != nil {
		r.Fatal(err)
	}
	sum := sha256.Sum256(text)
	if int64(len(text)) != out.Size || hex.EncodeToString(sum[:]) != out.SHA256 {
		r.Errorf("%d bytes, but the output is %+v", len(text), out)
	}
	return text
}

func (r *reporter) failure(payload string) *handlers.Failure {
	r.Helper()
	_, err := r.run(r.Context(), payload)
	var failure *handlers.Failure
	if !errors.As(err, &failure) {
		r.Fatalf("%.200s: %v", payload, err)
	}
	return failure
}

// files returns all files and folders in the folder.
func (r *reporter) files() (names []string) {
	r.Helper()
	err := filepath.WalkDir(r.folder, func(path string, _ fs.DirEntry, err error) error {
		if path != r.folder {
			names = append(names, path)
		}
		return err
	})
	if err != nil {
		r.Error(err)
	}
	return names
}

func TestAReportOfGivenRows(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ payload, want string }{
		"objects": {
			`"rows": [{"b": 1.10, "a": "x"}, {"c": true, "a": null}, {}]`,
			"b,a,c\n1.10,x,\n,,true\n,,\n",
		},
		"objects with columns": {
			`"rows": [{"b": 1.10, "a": "x"}, {"c": true, "b": 2}], "columns": [{"name": "a", "title": "A, a"}, {"name": "b", "total": "sum"}, {"name": "b", "title": "mean", "total": "avg"}, {"name": "z", "total": "count"}]`,
			"\"A, a\",b,mean,z\nx,1.10,1.10,\n,2,2,\nTotal,3.10,1.55,0\n",
		},
		"lists":              {`"rows": [[1], [null, "x"], []]`, "Column 1,Column 2\n1,\n,x\n,\n"},
		"lists with columns": {`"rows": [[1], [null, "x"]], "columns": [{"name": "a"}, {"name": "b"}, {"name": "c"}]`, "a,b,c\n1,,\n,x,\n"},
		"no rows":            {`"rows": []`, "\n"},
		"no rows of columns": {`"rows": [], "columns": [{"name": "a", "total": "sum"}, {"name": "b", "total": "max"}]`, "a,b\n0,\n"},
		"nothing in rows":    {`"rows": [[null], [""]], "columns": [{"name": "a"}]`, "a\n\"\"\n\"\"\n"},
		"digits": {
			`"rows": [[12345678901234567890.00], [0.1], [0.2], [1e2], [-0]], "columns": [{"name": "n", "total": "sum"}]`,
			"n\n12345678901234567890.00\n0.1\n0.2\n1e2\n-0\n12345678901234567990.30\n",
		},
		"values within values": {`"rows": [[{"a": [1, "x"]}, [ ]]]`, "Column 1,Column 2\n\"{\"\"a\"\":[1,\"\"x\"\"]}\",[]\n"},
		"formulas": {
			`"rows": [["=1+1", "+1", "-5", "@x", "\tx", "\r=x", "-x", "＝x", "x=1", -5]], "columns": [{"name": "=a"}, {"name": "b"}, {"name": "c"}, {"name": "d"}, {"name": "e"}, {"name": "f"}, {"name": "g"}, {"name": "h"}, {"name": "i"}, {"name": "j"}]`,
			"'=a,b,c,d,e,f,g,h,i,j\n'=1+1,+1,-5,'@x,'\tx,\"'\r'=x\",'-x,'＝x,x=1,-5\n",
		},
		"the least and the greatest": {
			`"rows": [["9"], [10], [null], [-3.5]], "columns": [{"name": "a", "total": "min"}]`,
			"a\n9\n10\n\"\"\n-3.5\n-3.5\n",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newReporter(t, handlers.ReportConfig{})
			out, err := r.run(t.Context(), `{"title": "T", "format": "csv", `+c.payload+`}`)
			if err != nil {
				t.Fatal(err)
			}
			if got := string(r.text(out)); got != c.want {
				t.Errorf("got\n%s\nwant\n%s", got, c.want)
			}
		})
	}
}

func TestInvalidReportsAreRefused(t *testing.T) {
	t.Parallel()
	wide := func(n int) string { return `[` + strings.TrimSuffix(strings.Repeat("1,", n), ",") + `]` }
	var keys []string
	for i := range 999 {
		keys = append(keys, fmt.Sprintf(`"%x":0`, i))
	}
	for payload, c := range map[string]struct{ code, message string }{
		`[]`:                              {"INVALID_PAYLOAD", "payload"},
		`{"title": "T"}`:                  {"INVALID_PAYLOAD", "payload.format"},
		`{"format": "csv", "rows": []}`:   {"INVALID_PAYLOAD", "payload.title"},
		`{"title": "T", "format": "csv"}`: {"INVALID_PAYLOAD", "payload.rows"},
		`{"title": "T", "format": "csv", "rows": [], "query": "q"}`:                                                                                                          {"INVALID_PAYLOAD", "payload.rows"},
		`{"title": "T", "format": "csv", "rows": {}}`:                                                                                                                        {"INVALID_PAYLOAD", "payload.rows"},
		`{"title": "T", "format": "csv", "rows": [1]}`:                                                                                                                       {"INVALID_PAYLOAD", "payload.rows[0]"},
		`{"title": "T", "format": "csv", "rows": [[], {}]}`:                                                                                                                  {"INVALID_PAYLOAD", "payload.rows[1]"},
		`{"title": "T", "format": "doc", "rows": []}`:                                                                                                                        {"INVALID_PAYLOAD", "payload.format"},
		`{"title": "T", "format": "csv", "rows": [], "sql": "x"}`:                                                                                                            {"INVALID_PAYLOAD", "sql"},
		`{"title": "T", "format": "csv", "rows": [], "parameters": {}}`:                                                                                                      {"INVALID_PAYLOAD", "payload.parameters"},
		`{"title": "T", "format": "csv", "rows": [], "columns": []}`:                                                                                                         {"INVALID_PAYLOAD", "payload.columns"},
		`{"title": "T", "format": "csv", "rows": [], "columns": [{"name": ""}]}`:                                                                                             {"INVALID_PAYLOAD", "payload.columns[0].name"},
		`{"title": "T", "format": "csv", "rows": [], "columns": [{"name": "a", "total": "x"}]}`:                                                                              {"INVALID_PAYLOAD", "payload.columns[0].total"},
		`{"title": "T", "format": "csv", "rows": [[1, 2]], "columns": [{"name": "a"}]}`:                                                                                      {"INVALID_PAYLOAD", "payload.rows[0]"},
		`{"title": "T", "format": "csv", "rows": [["x"]], "columns": [{"name": "a", "total": "sum"}]}`:                                                                       {"INVALID_PAYLOAD", `row 1, column "a"`},
		`{"title": "T", "format": "csv", "rows": [["x"]], "columns": [{"name": "a", "total": "max"}]}`:                                                                       {"INVALID_PAYLOAD", "not a number"},
		`{"title": "T", "format": "csv", "rows": [[true]], "columns": [{"name": "a", "total": "max"}]}`:                                                                      {"INVALID_PAYLOAD", "not a number"},
		`{"title": "T", "format": "csv", "rows": [[1e999999999]], "columns": [{"name": "a", "total": "sum"}]}`:                                                               {"INVALID_PAYLOAD", "cannot be totalled"},
		`{"title": "T", "format": "csv", "rows": [` + wide(10_000) + `]}`:                                                                                                    {"INVALID_PAYLOAD", "1000 columns"},
		`{"title": "T", "format": "csv", "rows": [{` + strings.Join(keys, ",") + `}` + strings.Repeat(`,{}`, 10_000) + `]}`:                                                  {"INVALID_PAYLOAD", "cells"},
		`{"title": "T", "format": "html", "columns": [` + strings.Repeat(`{"name": "a"},`, 999) + `{"name": "a"}], "rows": [{"a": "` + strings.Repeat("<", 400_000) + `"}]}`: {"INVALID_PAYLOAD", "payload.rows: make more than"},
		`{"title": "T", "format": "pdf", "rows": [` + wide(41) + `]}`:                                                                                                        {"REPORT_TOO_LARGE", "40 columns"},
		`{"title": "T", "format": "pdf", "rows": [[]` + strings.Repeat(`,[1]`, 50_000) + `]}`:                                                                                {"REPORT_TOO_LARGE", "50000 rows"},
		`{"title": "` + strings.Repeat("ä", 201) + `", "format": "csv", "rows": []}`:                                                                                         {"INVALID_PAYLOAD", "payload.title"},
		`{"title": "T", "format": "csv", "query": "q"}`:                                                                                                                      {"NOT_CONFIGURED", "REPORT_DATABASE_URL"},
	} {
		t.Run(fmt.Sprintf("%.90s", payload), func(t *testing.T) {
			t.Parallel()
			r := newReporter(t, handlers.ReportConfig{})
			failure := r.failure(payload)
			if failure.Code != "WORKER."+c.code || !strings.Contains(failure.Message, c.message) || failure.Retryable {
				t.Errorf("failed with %+v", failure)
			}
			if left := r.files(); len(left) > 0 {
				t.Errorf("left %v", left)
			}
		})
	}
}

func TestAReportWithoutABucketFails(t *testing.T) {
	t.Parallel()
	report, err := handlers.NewReport(handlers.ReportConfig{})
	if err != nil {
		t.Fatal(err)
	}
	defer report.Close()
	_, err = (&reporter{T: t, report: report}).run(t.Context(), `{"title": "T", "format": "csv", "rows": []}`)
	var failure *handlers.Failure
	if !errors.As(err, &failure) || failure.Code != "WORKER.NOT_CONFIGURED" || failure.Retryable ||
		!strings.Contains(failure.Message, "REPORT_BUCKET") {
		t.Errorf("failed with %v", err)
	}
}

func TestInvalidReportSettingsAreRefused(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	broken := filepath.Join(dir, "broken.yaml")
	file := filepath.Join(dir, "a file")
	if err := errors.Join(os.WriteFile(broken, []byte("q: {sql: select @a}"), 0o600), os.WriteFile(file, nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	for want, cfg := range map[string]handlers.ReportConfig{
		"REPORT_BUCKET: it must be file:///… or s3://…":  {Bucket: "/tmp/reports"},
		"REPORT_BUCKET: it must be file:///… or s3://…/": {Bucket: "gs://bucket"},
		"REPORT_BUCKET: it needs a region":               {Bucket: "s3://bucket"},
		"REPORT_BUCKET: its prefix":                      {Bucket: "s3://bucket?region=x&prefix=a"},
		"REPORT_BUCKET: it has no parameter \"regoin\"":  {Bucket: "s3://bucket?regoin=x"},
		"REPORT_BUCKET: its use_path_style":              {Bucket: "s3://bucket?use_path_style=perhaps"},
		"REPORT_BUCKET: its endpoint":                    {Bucket: "s3://bucket?endpoint=ftp://a"},
		"REPORT_BUCKET: its ssetype":                     {Bucket: "s3://bucket?ssetype=AES128"},
		"REPORT_BUCKET: ":                                {Bucket: "file://" + file + "/reports"},
		"REPORT_QUERIES: open ":                          {Queries: filepath.Join(dir, "none.yaml")},
		"REPORT_QUERIES: query q: ":                      {Queries: broken},
		"REPORT_DATABASE_URL: ":                          {DatabaseURL: secret.Of("postgres://u:geheim@[/x")},
	} {
		_, err := handlers.NewReport(cfg)
		if err == nil || !strings.HasPrefix(err.Error(), strings.TrimSuffix(want, "/")) || strings.Contains(err.Error(), "geheim") {
			t.Errorf("%+v: %v", cfg, err)
		}
	}
}

func TestAReportIsReadableByItsUserOnly(t *testing.T) {
	t.Parallel()
	r := newReporter(t, handlers.ReportConfig{})
	if _, err := r.run(t.Context(), `{"title": "T", "format": "csv", "rows": [[1]]}`); err != nil {
		t.Fatal(err)
	}
	files := r.files()
	if len(files) != 2 {
		t.Errorf("files %v", files)
	}
	for _, folder := range []string{r.folder, filepath.Dir(files[len(files)-1])} {
		if info, err := os.Stat(folder); err != nil || info.Mode().Perm() != 0o700 {
			t.Errorf("%s: %v, %v", folder, info.Mode(), err)
		}
	}
}

// Any payload either fails with a *Failure or gives a report, and a CSV file has the cells of the payload.
func FuzzReport(f *testing.F) {
	f.Add(`{"title": "T", "format": "csv", "rows": [{"a": 1.5, "b": "x\"y,\nz"}, {"c": [true, null]}], "columns": [{"name": "a", "total": "avg"}]}`)
	f.Add(`{"title": "../../etc/passwd", "format": "csv", "rows": [["=cmd", "\r", ""], [" ", "\u0000"]]}`)
	f.Add(`{"title": "T", "format": "csv", "rows": [["a;=1|+'\n-x"]]}`) // formulas
	f.Add(`{"title": "T", "format": "html", "rows": [["<script>"]]}`)
	f.Add(`{"title": "T", "format": "csv", "rows": [[1e5, -1E-5]], "columns": [{"name": "a", "total": "avg"}, {"name": "b", "total": "max"}]}`)
	f.Fuzz(func(t *testing.T, payload string) {
		r := newReporter(t, handlers.ReportConfig{})
		out, err := r.run(t.Context(), payload)
		var failure *handlers.Failure
		if err != nil {
			if !errors.As(err, &failure) || failure.Code == "WORKER.REPORT_NOT_STORED" {
				t.Errorf("failed with %v", err)
			}
			return
		}
		if text := r.text(out); extension(out.Location) == "csv" {
			sameCells(t, payload, text, out.Rows)
		}
	})
}

// sameCells reads a CSV file: each cell must have the payload's value, except for the quotes before formulas.
func sameCells(t *testing.T, payload string, text []byte, count int) {
	t.Helper()
	var given struct {
		Rows    []json.RawMessage
		Columns []struct{ Total string }
	}
	if err := json.Unmarshal([]byte(payload), &given); err != nil {
		t.Fatal(err)
	}
	reader := csv.NewReader(bytes.NewReader(text))
	lines, err := reader.ReadAll()
	if err != nil {
		t.Fatalf("%v in %q", err, text)
	}
	if count != len(given.Rows) || len(lines) == 0 || len(lines[0]) == 0 {
		return // without columns
	}
	for i, row := range given.Rows {
		var cells []any
		d := json.NewDecoder(bytes.NewReader(row))
		d.UseNumber()
		if d.Decode(&cells) != nil {
			return // objects
		}
		for at, cell := range cells {
			want, isText := cell.(string)
			if number, ok := cell.(json.Number); ok {
				want, isText = number.String(), true
			}
			want = strings.ReplaceAll(want, "\r\n", "\n") // as the reader returns it
			got := lines[i+1][at]
			if isText && (strings.ReplaceAll(got, "'", "") != strings.ReplaceAll(want, "'", "") || len(got) < len(want)) {
				t.Errorf("row %d cell %d: %q, given %q", i, at, got, want)
			}
		}
	}
}
