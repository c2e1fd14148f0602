package gateway

import (
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"path"
	"slices"
	"strings"
	"sync"

	"github.com/gin-gonic/gin"

	"github.com/jobweaver/jobweaver/functions/gateway/edge"
)

// dashboardBuild is what `npm run build` makes of dashboard/; it is committed, so that Go alone builds the gateway.
//
//go:embed all:dashboard/dist
var dashboardBuild embed.FS

// builtDashboard reads and compresses the build once for all gateways of the process.
var builtDashboard = sync.OnceValues(func() (dashboard, error) {
	build, err := fs.Sub(dashboardBuild, "dashboard/dist")
	if err != nil {
		return dashboard{}, err
	}
	return newDashboard(build)
})

// assetsPath is the folder of files whose names hold a digest of their content. They never change.
const (
	assetsPath = "/assets/"
	forever    = "public, max-age=31536000, immutable"
)

// dashboardTypes are the media types of the build's files. The system's table may be missing in an image.
var dashboardTypes = map[string]string{
	".css": "text/css; charset=utf-8", ".html": edge.HTMLType, ".ico": "image/x-icon",
	".js":   "text/javascript; charset=utf-8",
	".json": jsonType, ".png": "image/png", ".svg": "image/svg+xml", ".txt": "text/plain; charset=utf-8",
	".webmanifest": "application/manifest+json", ".woff2": "font/woff2",
}

// dashboardKey marks requests for parts of the dashboard in gin's context, so that they are not counted as unknown.
const dashboardKey = "dashboard"

// dashboard is the page for operators: one document for all its addresses, and the files that it loads.
type dashboard struct {
	index   edge.Static
	files   map[string]edge.Static // by path, without index.html
	connect func() []string        // origins beside its own that its script may ask; nil: none
}

// newDashboard reads a build.
func newDashboard(build fs.FS) (dashboard, error) {
	d := dashboard{files: map[string]edge.Static{}}
	err := fs.WalkDir(build, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		contentType, known := dashboardTypes[path.Ext(name)]
		if !known {
			return fmt.Errorf("%s: its media type is not in dashboardTypes", name)
		}
		body, err := fs.ReadFile(build, name)
		if err != nil {
			return err
		}
		file := edge.NewStatic(contentType, body)
		if name == "index.html" {
			d.index = file
			return nil
		}
		if strings.HasPrefix("/"+name, assetsPath) {
			file.Cache = forever
		}
		d.files["/"+name] = file
		return nil
	})
	if err == nil && len(d.index.Body) == 0 {
		err = errors.New("index.html is missing")
	}
	if err != nil {
		return d, fmt.Errorf("read the build of the dashboard: %w", err)
	}
	return d, nil
}

// ownFolders are those of other endpoints: an unknown address in one of them is no page.
var ownFolders = []string{"/api/", "/events/", "/health/", "/metrics/", assetsPath}

// at returns what answers a request for which there is no endpoint; nil: nothing does. The files of the build are found
// by their paths. Any other address that a browser opens is one of the pages, which the script tells apart.
func (d *dashboard) at(r *http.Request) func(*gin.Context) error {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		return nil
	}
	if file, found := d.files[r.URL.Path]; found {
		return file.Answer
	}
	folder := func(own string) bool { return strings.HasPrefix(r.URL.Path+"/", own) }
	if !strings.Contains(r.Header.Get("Accept"), "text/html") || slices.ContainsFunc(ownFolders, folder) {
		return nil
	}
	return d.show
}

// show answers with the document.
func (d *dashboard) show(c *gin.Context) error {
	page := d.index
	page.Policy = dashboardPolicy(string(page.Body), d.connect)
	return page.Answer(c)
}

// dashboardPolicy lets the page use the files of this server and what stands in the document, and connect to this
// server and to the origins of connect.
func dashboardPolicy(document string, connect func() []string) string {
	to := "'self'"
	if connect != nil {
		to = strings.Join(append([]string{to}, connect()...), " ")
	}
	return "default-src 'none'; script-src 'self'" + edge.Inlines(document, "script") +
		"; style-src 'self'" + edge.Inlines(document, "style") +
		"; img-src 'self' data:; font-src 'self'; connect-src " + to +
		"; form-action 'none'; base-uri 'none'; frame-ancestors 'none'"
}
