package handlers_test

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"

	"github.com/jobweaver/jobweaver/functions/runjob/handlers"
)

// bucket is a bucket of a test server for S3.
type bucket struct {
	url    string // of the bucket
	server *httptest.Server
	store  *s3mem.Backend

	mu      sync.Mutex
	aborted int

	onPart func() // called for each uploaded part
}

func newBucket(t *testing.T) *bucket {
	t.Helper()
	b := &bucket{store: s3mem.New()}
	if err := b.store.CreateBucket("reports"); err != nil {
		t.Fatal(err)
	}
	s3 := gofakes3.New(b.store).Server()
	b.server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodDelete && r.URL.Query().Has("uploadId") {
			b.mu.Lock()
			b.aborted++
			b.mu.Unlock()
		}
		if b.onPart != nil && r.URL.Query().Has("partNumber") {
			b.onPart()
		}
		s3.ServeHTTP(w, r)
	}))
	t.Cleanup(b.server.Close)
	b.url = b.at("reports")
	return b
}

func (b *bucket) at(name string) string {
	return "s3://" + name + "?region=eu-central-1&use_path_style=true&endpoint=" + url.QueryEscape(b.server.URL)
}

// Not parallel: credentials come from the environment of the process.
func init() {
	for name, value := range map[string]string{
		"AWS_ACCESS_KEY_ID": "key", "AWS_SECRET_ACCESS_KEY": "secret", "AWS_EC2_METADATA_DISABLED": "true",
		"AWS_CONFIG_FILE": os.DevNull, "AWS_SHARED_CREDENTIALS_FILE": os.DevNull,
	} {
		_ = os.Setenv(name, value)
	}
}

// noise returns rows of about this many bytes that do not compress.
func noise(bytes int) string {
	row := fmt.Sprintf(`[%q],`, randomText(8<<10))
	return strings.TrimSuffix(strings.Repeat(row, bytes/len(row)+1), ",")
}

func randomText(bytes int) string {
	var text strings.Builder
	for text.Len() < bytes {
		text.WriteString(rand.Text())
	}
	return text.String()
}

func TestReportsAreStoredInABucket(t *testing.T) {
	t.Parallel()
	b := newBucket(t)
	r := newReporter(t, handlers.ReportConfig{Bucket: b.url + "&prefix=of%20mine/"})
	for _, size := range []int{100, 11 << 20} { // at once, and in parts
		out, err := r.run(t.Context(), `{"title": "T", "format": "csv", "rows": [`+noise(size)+`]}`)
		if err != nil {
			t.Fatal(err)
		}
		key, ok := strings.CutPrefix(out.Location, "s3://reports/of%20mine/")
		if !ok {
			t.Fatalf("location %s", out.Location)
		}
		object, err := b.store.GetObject("reports", "of mine/"+key, nil)
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(object.Contents)
		if err != nil || int64(len(text)) != out.Size || object.Metadata["Content-Type"] != out.ContentType {
			t.Errorf("%d bytes of %d, %v, %v", len(text), out.Size, object.Metadata, err)
		}
	}
}

func TestACancelledUploadLeavesNoFile(t *testing.T) {
	t.Parallel()
	b := newBucket(t)
	r := newReporter(t, handlers.ReportConfig{Bucket: b.url})
	why := errors.New("because")
	ctx, cancel := context.WithCancelCause(t.Context())
	b.onPart = func() { cancel(why) }
	_, err := r.run(ctx, `{"title": "T", "format": "csv", "rows": [`+noise(11<<20)+`]}`)
	if !errors.Is(err, why) {
		t.Fatalf("ended with %v", err)
	}
	objects, err := b.store.ListBucket("reports", nil, gofakes3.ListBucketPage{})
	if err != nil || len(objects.Contents) > 0 {
		t.Errorf("left %v, %v", objects, err)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.aborted != 1 {
		t.Errorf("%d uploads of parts were called off", b.aborted)
	}
}

func TestAMissingOrRefusingBucketFailsTheReport(t *testing.T) {
	t.Parallel()
	b := newBucket(t)
	forbids := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusForbidden)
		_, _ = io.WriteString(w, `<Error><Code>AccessDenied</Code><Message>Access Denied</Message></Error>`)
	}))
	t.Cleanup(forbids.Close)
	away := strings.Replace(b.at("reports"), url.QueryEscape(b.server.URL), url.QueryEscape("http://127.0.0.1:1"), 1)
	for want, at := range map[string]string{
		"NoSuchBucket": b.at("none"),
		"AccessDenied": strings.Replace(b.url, url.QueryEscape(b.server.URL), url.QueryEscape(forbids.URL), 1),
		"refused":      away,
	} {
		r := newReporter(t, handlers.ReportConfig{Bucket: at})
		for _, size := range []int{100, 11 << 20} { // at once, and in parts
			if size > 100 && (at != b.at("none") || testing.Short()) {
				continue // it would only take the same path again, for a long time
			}
			failure := r.failure(`{"title": "T", "format": "csv", "rows": [` + noise(size) + `]}`)
			if failure.Code != "WORKER.REPORT_NOT_STORED" || !failure.Retryable || !strings.Contains(failure.Message, want) {
				t.Errorf("%s: %+v", want, failure)
			}
		}
	}
}

func TestAFullDiskIsRetried(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("one goroutine writes each report: there is nothing to race")
	}
	folder := filepath.Join(t.TempDir(), "small")
	if err := os.Mkdir(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := mountSmall(folder); err != nil {
		t.Skipf("cannot mount a small disk here: %v", err)
	}
	t.Cleanup(func() { _ = unmount(folder) })
	r := newReporter(t, handlers.ReportConfig{Bucket: (&url.URL{Scheme: "file", Path: folder}).String()})
	r.folder = folder
	for _, format := range []string{"csv", "html", "xlsx", "pdf"} {
		var rows strings.Builder
		for range 2_000 {
			fmt.Fprintf(&rows, `[%q,%q],`, randomText(1<<10), randomText(1<<10))
		}
		failure := r.failure(fmt.Sprintf(`{"title": "T", "format": %q, "rows": [%s[]]}`, format, rows.String()))
		if failure.Code != "WORKER.REPORT_NOT_STORED" || !failure.Retryable ||
			!strings.Contains(failure.Message, "no space left on device") {
			t.Errorf("%s: %+v", format, failure)
		}
		if left := r.files(); len(left) > 0 {
			t.Errorf("%s: left %v", format, left)
		}
	}
}

func TestAnUnwritableFolderIsRetried(t *testing.T) {
	t.Parallel()
	r := newReporter(t, handlers.ReportConfig{})
	if err := os.RemoveAll(r.folder); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(r.folder, nil, 0o600); err != nil { // like a folder that even root cannot enter
		t.Fatal(err)
	}
	failure := r.failure(`{"title": "T", "format": "csv", "rows": []}`)
	if failure.Code != "WORKER.REPORT_NOT_STORED" || !failure.Retryable || !strings.Contains(failure.Message, "not a directory") {
		t.Errorf("failed with %+v", failure)
	}
	if os.Geteuid() == 0 || runtime.GOOS == "windows" {
		return
	}
	closed := newReporter(t, handlers.ReportConfig{})
	if err := os.Chmod(closed.folder, 0o500); err != nil {
		t.Fatal(err)
	}
	failure = closed.failure(`{"title": "T", "format": "csv", "rows": []}`)
	if !failure.Retryable || !strings.Contains(failure.Message, "permission denied") {
		t.Errorf("failed with %+v", failure)
	}
}
