package gateway_test

import (
	"bytes"
	"compress/gzip"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/jobstate"
)

func TestUnchangedJobIsNotSentAgain(t *testing.T) {
	t.Parallel()
	h := open(t)
	id := h.submit(plainJob)
	path := "/api/jobs/" + id.String()
	h.scheduler(id, 3, jobstate.Running, func(s *jobevent.Status) { s.Attempt = 1 })
	tag := h.get(path).want(http.StatusOK).header.Get("ETag")
	if !strings.HasPrefix(tag, `W/"3-`) {
		t.Errorf("ETag %s", tag)
	}
	for _, has := range []string{tag, strings.TrimPrefix(tag, "W/"), `"x", ` + tag, "*"} {
		for _, method := range []string{http.MethodGet, http.MethodHead} {
			r := h.do(method, path, "", "If-None-Match", has).want(http.StatusNotModified)
			if len(r.body) > 0 || r.header.Get("ETag") != tag {
				t.Errorf("%s %s: %v %s", method, has, r.header, r.body)
			}
		}
	}
	for _, other := range []string{`W/"3"`, `"x"`, "", `W/"3-0000000000000000"`} {
		h.get(path, "If-None-Match", other).want(http.StatusOK)
	}
	// The response changes without a transition.
	lines := jobevent.AttemptLog{JobID: id, Attempt: 1, Lines: []jobevent.LogLine{{At: time.Now(), Level: "INFO", Text: "hi"}}}
	if err := h.store.Logs.Add(t.Context(), []jobevent.AttemptLog{lines}); err != nil {
		t.Fatal(err)
	}
	if again := h.get(path, "If-None-Match", tag).want(http.StatusOK).header.Get("ETag"); again == tag {
		t.Errorf("a line more, and still %s", tag)
	}
}

func TestStaticContentIsSentOnceAndCompressed(t *testing.T) {
	t.Parallel()
	h := open(t)
	for path, contentType := range map[string]string{
		"/api/openapi.yaml": "application/yaml", "/api/openapi.json": "application/json; charset=utf-8",
		"/api/reference": "text/html; charset=utf-8",
	} {
		plain := h.get(path, "Accept-Encoding", "identity").want(http.StatusOK)
		short := h.get(path, "Accept-Encoding", "gzip")
		if plain.header.Get("Content-Type") != contentType || plain.header.Get("Content-Encoding") != "" || plain.header.Get("Vary") != "Accept-Encoding" {
			t.Errorf("%s: %v", path, plain.header)
		}
		if short.header.Get("Content-Encoding") != "gzip" || len(short.body) > len(plain.body)*2/3 || !bytes.Equal(short.unzipped(), plain.body) {
			t.Errorf("%s: %d bytes, compressed %d, %v", path, len(plain.body), len(short.body), short.header)
		}
		for _, method := range []string{http.MethodGet, http.MethodHead} {
			h.do(method, path, "", "If-None-Match", plain.header.Get("ETag")).want(http.StatusNotModified)
		}
		head := h.do(http.MethodHead, path, "", "Accept-Encoding", "gzip").want(http.StatusOK)
		if len(head.body) > 0 || head.header.Get("ETag") != short.header.Get("ETag") {
			t.Errorf("HEAD %s: %v", path, head.header)
		}
	}
}

func TestOnlyLongResponsesToReadsAreCompressed(t *testing.T) {
	t.Parallel()
	h := open(t)
	long := strings.Replace(plainJob, "hi", strings.Repeat("hi ", 1000), 1)
	r := h.post("/api/jobs", long, "Accept-Encoding", "gzip").want(http.StatusAccepted)
	path := "/api/jobs/" + r.jobID().String()
	if got := r.header.Get("Content-Encoding") + h.get("/api/me", "Accept-Encoding", "gzip").header.Get("Content-Encoding"); got != "" {
		t.Errorf("a short answer is sent as %s", got)
	}
	whole := h.get(path, "Accept-Encoding", "gzip").want(http.StatusOK)
	if whole.header.Get("Content-Encoding") != "gzip" || !strings.Contains(string(whole.unzipped()), "hi hi hi") {
		t.Errorf("answered %v", whole.header)
	}
	h.get(path, "Accept-Encoding", "gzip", "If-None-Match", whole.header.Get("ETag")).want(http.StatusNotModified)
	if same := h.get(path, "Accept-Encoding", "identity"); same.header.Get("ETag") != whole.header.Get("ETag") {
		t.Errorf("the tag depends on the encoding: %v", same.header)
	}
}

func (r *response) unzipped() []byte {
	r.t.Helper()
	z, err := gzip.NewReader(bytes.NewReader(r.body))
	if err != nil {
		r.t.Fatal(err)
	}
	plain, err := io.ReadAll(z)
	if err != nil {
		r.t.Fatal(err)
	}
	return plain
}

// The pages need only the scripts and styles in their own documents.
func TestPagesNeedNoExceptionsForInlineCode(t *testing.T) {
	t.Parallel()
	h := open(t)
	for path, allowed := range map[string]string{"/": "script-src 'self'", "/api/reference": "script-src 'none'"} {
		r := h.get(path).want(http.StatusOK)
		policy, page := r.header.Get("Content-Security-Policy"), string(r.body)
		if strings.Contains(policy, "unsafe") || !strings.Contains(policy, "default-src 'none'") || !strings.Contains(policy, allowed) {
			t.Errorf("%s: %s", path, policy)
		}
		if strings.Contains(page, " style=") || strings.Contains(page, " onclick=") {
			t.Errorf("%s has what its policy forbids", path)
		}
	}
	if page := string(h.get("/api/reference").body); !strings.Contains(page, `id="submitJob"`) || !strings.Contains(page, `id="schema-Job"`) {
		t.Errorf("%.300s", page)
	}
}
