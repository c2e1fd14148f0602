//go:build !nodev

package installcmd

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/jobweaver/jobweaver/local/dev"
)

// A pause is stored in the folder, so the jobs of the next run do not start.
func TestDevPrintsControlsPausedByAnEarlierRun(t *testing.T) {
	t.Parallel()
	gateway := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/api/controls" {
			t.Errorf("asked for %s", r.URL)
		}
		_, _ = io.WriteString(w, `{"controls":[
			{"kind":"queue","name":"default","paused":true},{"kind":"type","name":"A","maxRunning":2}]}`)
	}))
	defer gateway.Close()
	var out strings.Builder
	printPaused(t.Context(), dev.Options{Out: &out, Dir: t.TempDir()}, gateway.URL)
	if out.String() != "queue default is paused; bin/jobweaver resume queue default\n" {
		t.Errorf("it printed %q", out.String())
	}
}

// After dev --port 18080, jobweaver list once failed.
func TestDevPrintsItsURLForTheCommandLine(t *testing.T) {
	t.Parallel()
	for url, printed := range map[string]bool{"http://127.0.0.1:18080": true, "https://127.0.0.1:8080": true, "http://127.0.0.1:8080": false} {
		var out strings.Builder
		welcome(dev.Options{Out: &out, Dir: t.TempDir()}, url)
		if strings.Contains(out.String(), "  export JOBWEAVER_URL="+url+"\n") != printed {
			t.Errorf("at %s it printed %s", url, out.String())
		}
	}
}
