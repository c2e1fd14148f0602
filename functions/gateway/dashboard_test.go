package gateway_test

import (
	"bytes"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/jobweaver/jobweaver/functions/gateway/edge"
	"github.com/jobweaver/jobweaver/shared/apierror"
)

// asBrowser is the Accept header of a browser that opens an address.
var asBrowser = []string{"Accept", "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"}

func TestTheDashboardHasAnAddressForEachPage(t *testing.T) {
	t.Parallel()
	h := open(t)
	index := h.get("/").want(http.StatusOK)
	for _, path := range []string{"/jobs", "/jobs/01936f3e-5f3e-7cc0-8000-0123456789ab", "/dead-letters", "/apiary", "/schedules/a%2Fb", "/login?code=x"} {
		for _, method := range []string{http.MethodGet, http.MethodHead} {
			r := h.do(method, path, "", asBrowser...).want(http.StatusOK)
			if r.header.Get("Content-Security-Policy") != index.header.Get("Content-Security-Policy") ||
				r.header.Get("ETag") != index.header.Get("ETag") || r.header.Get("Cache-Control") != "no-cache" {
				t.Errorf("%s %s: %v", method, path, r.header)
			}
			if method == http.MethodGet && !bytes.Equal(r.body, index.body) || method == http.MethodHead && len(r.body) > 0 {
				t.Errorf("%s %s: %s", method, path, r.body)
			}
		}
		h.get(path).wantError(apierror.NotFound)
		h.do(http.MethodPost, path, "{}", asBrowser...).wantError(apierror.NotFound)
	}
}

// A wrong address of the API stays an error, whatever the client accepts.
func TestAddressWithoutAPageIsNotFound(t *testing.T) {
	t.Parallel()
	h := open(t)
	for _, path := range []string{
		"/api", "/api/", "/api/nothing", "/events/x", "/metrics/x", "/health", "/health/x", "/assets", "/assets/none.js", "//jobs", "/jobs/../x",
	} {
		h.get(path, asBrowser...).wantError(apierror.NotFound)
	}
	for _, path := range []string{"/assets/..%2findex.html", "/index.html", "/dashboard/dist/index.html", "/.env"} {
		h.get(path).wantError(apierror.NotFound)
	}
	h.get("/events", asBrowser...).wantError(apierror.MethodNotAllowed)
	h.do(http.MethodPost, "/", "{}", asBrowser...).wantError(apierror.MethodNotAllowed)
}

// loaded returns the files that the document of the build names.
func loaded(t *testing.T, document string) []string {
	t.Helper()
	var files []string
	for _, found := range regexp.MustCompile(`(?:src|href)="(/[^"]+)"`).FindAllStringSubmatch(document, -1) {
		files = append(files, found[1])
	}
	if !slices.ContainsFunc(files, func(f string) bool { return strings.HasSuffix(f, ".js") }) {
		t.Fatalf("the document loads %v", files)
	}
	return files
}

func TestTheFilesOfTheDashboardAreLoadedOnce(t *testing.T) {
	t.Parallel()
	h := open(t)
	for _, path := range loaded(t, string(h.get("/").body)) {
		plain := h.get(path, "Accept-Encoding", "identity").want(http.StatusOK)
		onDisk, err := os.ReadFile(filepath.Join("dashboard/dist", path))
		if err != nil || !bytes.Equal(plain.body, onDisk) {
			t.Errorf("%s is %d bytes, %v", path, len(plain.body), err)
		}
		cached := plain.header.Get("Cache-Control")
		if strings.HasPrefix(path, "/assets/") != (cached == "public, max-age=31536000, immutable") || plain.header.Get("Vary") != "Accept-Encoding" {
			t.Errorf("%s: %v", path, plain.header)
		}
		h.get(path, "If-None-Match", plain.header.Get("ETag")).want(http.StatusNotModified)
		if head := h.do(http.MethodHead, path, ""); head.status != http.StatusOK || len(head.body) > 0 {
			t.Errorf("HEAD %s: %d", path, head.status)
		}
		if len(onDisk) < 2<<10 || strings.HasSuffix(path, ".png") {
			continue
		}
		for accepted, zipped := range map[string]bool{
			"gzip": true, "br, GZIP;q=0.5": true, "gzip;q=0, br": false, "br": false, "gzip; q=x": false,
		} {
			r := h.get(path, "Accept-Encoding", accepted).want(http.StatusOK)
			if zipped != (r.header.Get("Content-Encoding") == "gzip") {
				t.Errorf("%s for %q: %v", path, accepted, r.header)
			}
			if zipped && (len(r.body) > len(onDisk)*2/3 || !bytes.Equal(r.unzipped(), onDisk)) {
				t.Errorf("%s for %q: %d bytes", path, accepted, len(r.body))
			}
		}
	}
}

func TestDashboardMayOnlyConnectToItsServer(t *testing.T) {
	t.Parallel()
	h := open(t)
	r := h.get("/jobs", asBrowser...).want(http.StatusOK)
	policy := r.header.Get("Content-Security-Policy")
	if at := regexp.MustCompile(`'sha256-[A-Za-z0-9+/=]+'`).FindAllString(policy, -1); len(at) > 0 {
		policy = strings.NewReplacer(" "+strings.Join(at, " "), "").Replace(policy)
	}
	want := "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; connect-src 'self'; " +
		"form-action 'none'; base-uri 'none'; frame-ancestors 'none'"
	if policy != want {
		t.Errorf("the policy is %s", policy)
	}
	for _, inline := range []string{" style=", " onclick=", " onload=", "javascript:", "http://", "https://"} {
		if strings.Contains(string(r.body), inline) {
			t.Errorf("the document has %s", inline)
		}
	}
}

// The files that never change do not count: a page loads more of them at once than a limit may allow.
func TestDashboardRequestsCountForTheirAddress(t *testing.T) {
	t.Parallel()
	c := open(t).behind(edge.LimitsConfig{RateLimit: seldom})
	page := c.get("/jobs", asBrowser...).want(http.StatusOK)
	for _, file := range loaded(t, string(page.body)) {
		if strings.HasPrefix(file, "/assets/") {
			c.get(file).want(http.StatusOK)
		}
	}
	c.get("/jobs", asBrowser...).wantSlower()
	c.get("/favicon.svg").wantSlower()
	c.get("/assets/none.js").wantError(apierror.NotFound)
}
