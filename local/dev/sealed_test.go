package dev_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jobweaver/jobweaver/functions/runjob/handlers"
	"github.com/jobweaver/jobweaver/local/dev"
	"github.com/jobweaver/jobweaver/shared/client"
	"github.com/jobweaver/jobweaver/shared/jobspec"
	"github.com/jobweaver/jobweaver/shared/sealing"
)

// secretParts are the parts of a job's data that are sealed; each has a canary of its own.
var secretParts = []string{"payload", "output", "log", "progress", "failure", "schedule", "callback", "halfway"}

func canaryOf(part string) string { return "canary-of-the-" + part + "-a7Jq2" }

func TestNoDataOfAJobIsFoundOnDisk(t *testing.T) {
	t.Parallel()
	for name, seal := range map[string]bool{"with keys": true, "without keys, as the search has to find them": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := options(t, newFolder(t))
			if seal {
				o.Keyset = filepath.Join(t.TempDir(), "keyset.json")
				if _, err := sealing.CreateKeyset(o.Keyset); err != nil {
					t.Fatal(err)
				}
			}
			runSecretJobs(t, o)
			for part, where := range found(t, o.Dir) {
				if seal && where != "" {
					t.Errorf("%s is found in %s", part, where)
				}
				if !seal && where == "" {
					t.Errorf("%s is not found: the search does not work", part)
				}
			}
		})
	}
}

// runSecretJobs runs a few jobs in an installation and stops it.
func runSecretJobs(t *testing.T, o dev.Options) {
	t.Helper()
	v := &visit{t: t, open: make(chan struct{}), starts: map[string][]time.Time{}}
	o.Handlers = map[string]handlers.Handler{"SECRET": v.secret}
	err := dev.Run(t.Context(), o, func(ctx context.Context, url string) error {
		v.api = client.New(url, "")
		v.secrets(ctx, o.Dir)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func (v *visit) secrets(ctx context.Context, dir string) {
	payload := fmt.Sprintf(`{"does": "talks", "text": %q}`, canaryOf("payload"))
	talks := v.submit(ctx, "SECRET", payload, "")
	fails := v.submit(ctx, "SECRET", `{"does": "fails"}`, `, "maxRetryCount": 0`)
	waits := v.submit(ctx, "SECRET", `{"does": "waits"}`, "")
	// These two wait until the end: a job that has ended has no progress, and PostgreSQL drops its old rows at any time.
	reported := v.submit(ctx, "SECRET", `{"does": "waits"}`, "")
	reports := v.submit(ctx, "SECRET", `{"does": "reports and waits"}`, "")
	grow := v.grow(ctx)
	v.do(ctx, http.MethodPut, "/api/schedules/secret", fmt.Sprintf(
		`{"cron": "@yearly", "job": {"jobType": "SECRET", "payload": {"text": %q}}}`, canaryOf("schedule")), nil)
	var ran struct{ JobID string }
	v.do(ctx, http.MethodPost, "/api/schedules/secret/run", "", &ran)
	shows := func(id, part string) {
		v.until(ctx, id, "its progress is seen", func(j *client.Job) bool {
			return j.Progress != nil && bytes.Contains(j.Raw, []byte(canaryOf(part)))
		})
	}
	shows(talks, "progress")
	shows(reports, "progress")
	close(v.open)
	for _, id := range []string{waits, reports, reported} {
		v.until(ctx, id, "it waits", func(j *client.Job) bool { return j.Status == "WAITING" })
	}
	halfway := fmt.Sprintf(`"status": "PROGRESS", "progress": {"percent": 50, "message": %q}`, canaryOf("halfway"))
	for _, id := range []string{waits, reported} {
		v.callBackWith(ctx, dir, id, halfway)
		shows(id, "halfway")
	}
	v.callBackWith(ctx, dir, waits, fmt.Sprintf(`"status": "COMPLETED", "output": {"text": %q}`, canaryOf("callback")))
	grow()
	for id, parts := range map[string][]string{
		talks: {"payload", "output", "log"}, fails: {"failure"}, waits: {"callback"}, ran.JobID: {"schedule"},
	} {
		v.end(ctx, id)
		v.until(ctx, id, "all is shown in plain", func(j *client.Job) bool {
			for _, part := range parts {
				if !bytes.Contains(j.Raw, []byte(canaryOf(part))) {
					return false
				}
			}
			return !bytes.Contains(j.Raw, []byte(`sealed`))
		})
	}
}

// grow submits the largest possible job, by itself and as a schedule. wanted checks that they are returned whole,
// with the largest possible output.
func (v *visit) grow(ctx context.Context) (wanted func()) {
	const job = `{"jobType": "SECRET", "maxRetryCount": 1, "payload": {"does": "grows", "text": "%s"}}`
	text := strings.Repeat("0123456789abcdef", jobspec.MaxJobBytes/16)[:jobspec.MaxJobBytes-len(job)+len("%s")]
	accepted, err := v.api.SubmitJSON(ctx, fmt.Appendf(nil, job, text))
	if err != nil {
		v.t.Fatal(err)
	}
	const more = `{"cron": "@yearly", "job": `
	v.do(ctx, http.MethodPut, "/api/schedules/large", more+fmt.Sprintf(job, text[:len(text)-len(more)-1])+`}`, nil)
	var ran struct{ JobID string }
	v.do(ctx, http.MethodPost, "/api/schedules/large/run", "", &ran)
	return func() {
		for id, size := range map[string]int{accepted.JobID: len(text), ran.JobID: len(text) - len(more) - 1} {
			var shown struct {
				Payload struct{ Text string }
				Output  string
			}
			end := v.end(ctx, id)
			if err := json.Unmarshal(end.Raw, &shown); err != nil || end.Status != "COMPLETED" || end.Attempt != 2 ||
				shown.Payload.Text != text[:size] || shown.Output != text[:handlers.MaxOutput-2] {
				v.t.Errorf("the largest: %s after %d attempts with %+v, %d bytes, %d of output, %v", end.Status, end.Attempt,
					end.LastError, len(shown.Payload.Text), len(shown.Output), err)
			}
		}
	}
}

func (v *visit) do(ctx context.Context, method, path, body string, into any) {
	v.t.Helper()
	if _, err := v.api.Do(ctx, method, path, "application/json", []byte(body), into); err != nil {
		v.t.Fatal(err)
	}
}

// callBackWith sends a callback signed with the installation's own secret.
func (v *visit) callBackWith(ctx context.Context, dir, id, rest string) {
	v.t.Helper()
	secret, err := os.ReadFile(filepath.Join(dir, "callback.secret"))
	if err != nil {
		v.t.Fatal(err)
	}
	body := fmt.Appendf(nil, `{"jobId": %q, "attempt": 1, %s}`, id, rest)
	_, err = v.api.Do(ctx, http.MethodPost, "/api/jobs/callback", "application/json", body, nil,
		"X-Callback-Secret", strings.TrimSpace(string(secret)))
	if err != nil {
		v.t.Fatal(err)
	}
}

func (v *visit) secret(ctx context.Context, a *handlers.Attempt) (handlers.Result, error) {
	var asked struct{ Does, Text string }
	if err := json.Unmarshal(a.Payload, &asked); err != nil {
		return handlers.Result{}, err
	}
	switch asked.Does {
	case "grows":
		if a.Number == 1 {
			return handlers.Result{}, errors.New("it is to be brought once more")
		}
		return handlers.Result{Output: json.RawMessage(`"` + asked.Text[:handlers.MaxOutput-2] + `"`)}, nil
	case "fails":
		return handlers.Result{}, errors.New(canaryOf("failure"))
	case "waits":
		return handlers.Result{WaitFor: time.Hour}, nil
	case "talks":
		a.Log(slog.LevelInfo, canaryOf("log"))
		a.Progress(10, canaryOf("progress"))
		select {
		case <-v.open:
		case <-ctx.Done():
		}
	case "reports and waits":
		a.Progress(10, canaryOf("progress"))
		select {
		case <-v.open:
		case <-ctx.Done():
		}
		return handlers.Result{WaitFor: time.Hour}, nil
	}
	return handlers.Result{Output: json.RawMessage(`{"text":"` + canaryOf("output") + `"}`)}, nil
}

// found returns in which file each canary is, in plain or in base64 at any alignment.
func found(t *testing.T, dir string) map[string]string {
	t.Helper()
	where, forms := map[string]string{}, map[string][][]byte{}
	for _, part := range secretParts {
		where[part] = ""
		plain := []byte(canaryOf(part))
		forms[part] = append(forms[part], plain)
		for shift := range 3 {
			text := base64.RawStdEncoding.EncodeToString(append(make([]byte, shift), plain...))
			// The first and last characters contain bits of the neighbouring text.
			forms[part] = append(forms[part], []byte(text[(shift*8+5)/6:len(text)-1]))
		}
	}
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return err
		}
		text, err := os.ReadFile(path)
		for part, all := range forms {
			for _, form := range all {
				if bytes.Contains(text, form) {
					where[part] = path
				}
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return where
}
