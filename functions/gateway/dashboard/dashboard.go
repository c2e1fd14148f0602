// Package dashboard serves the dashboard, and how its users log in.
//
// Why there is no session: docs/decisions/api.md#the-dashboard-logs-in-by-itself-without-a-session
package dashboard

import (
	"bytes"
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

// build is the output of `npm run build` in this folder. It is committed, so that Go alone builds the gateway.
//
//go:embed all:dist
var build embed.FS

// Open reads and compresses the build once for all gateways of the process.
var Open = sync.OnceValues(func() (Page, error) {
	dist, err := fs.Sub(build, "dist")
	if err != nil {
		return Page{}, err
	}
	return newPage(dist)
})

// assetsPath is the folder of files with a digest of their content in the name. They never change.
const (
	assetsPath = "/assets/"
	forever    = "public, max-age=31536000, immutable"
)

// mediaTypes are the media types of the build's files. An image may lack the system's table.
var mediaTypes = map[string]string{
	".css": "text/css; charset=utf-8", ".html": edge.HTMLType, ".ico": "image/x-icon",
	".js":   "text/javascript; charset=utf-8",
	".json": edge.JSONType, ".png": "image/png", ".svg": "image/svg+xml", ".txt": "text/plain; charset=utf-8",
	".webmanifest": "application/manifest+json", ".woff2": "font/woff2",
}

// Page is the dashboard: one document for all its addresses, and the files that it loads.
type Page struct {
	index edge.Static
	files map[string]edge.Static // by path, without index.html
	// Connect returns the origins, beside its own, to which its script may connect; nil: none.
	Connect func() []string
}

// newPage reads a build.
func newPage(build fs.FS) (Page, error) {
	p := Page{files: map[string]edge.Static{}}
	err := fs.WalkDir(build, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		contentType, known := mediaTypes[path.Ext(name)]
		if !known {
			return fmt.Errorf("%s: its media type is not in mediaTypes", name)
		}
		body, err := fs.ReadFile(build, name)
		if err != nil {
			return err
		}
		file := edge.NewStatic(contentType, body)
		if name == "index.html" {
			p.index = file
			return nil
		}
		if strings.HasPrefix("/"+name, assetsPath) {
			file.Cache = forever
		}
		p.files["/"+name] = file
		return nil
	})
	if err == nil && len(p.index.Body) == 0 {
		err = errors.New("index.html is missing")
	}
	if err != nil {
		return p, fmt.Errorf("read the build of the dashboard: %w", err)
	}
	return p, nil
}

// Below makes the document load its files below a path. The build names them relative to the document, whose address
// may be that of any page; the script finds the path by its own address.
func (p *Page) Below(base string) {
	p.index = edge.NewStatic(edge.HTMLType, bytes.ReplaceAll(p.index.Body, []byte(`="./`), []byte(`="`+base+`/`)))
}

// ownFolders are the folders of other endpoints: an unknown address in one of them is not a page of the dashboard.
var ownFolders = []string{"/api/", "/events/", "/health/", "/metrics/", assetsPath}

// At returns the handler for a request without an endpoint; nil: there is none. A file of the build is found by its
// path. Any other address that a browser opens is a page of the dashboard, which its script shows.
func (p *Page) At(r *http.Request) func(*gin.Context) error {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		return nil
	}
	if file, found := p.files[r.URL.Path]; found {
		return file.Answer
	}
	folder := func(own string) bool { return strings.HasPrefix(r.URL.Path+"/", own) }
	if !strings.Contains(r.Header.Get("Accept"), "text/html") || slices.ContainsFunc(ownFolders, folder) {
		return nil
	}
	return p.Show
}

// Immutable reports whether a path is that of a file that never changes.
func (p *Page) Immutable(path string) bool { return p.files[path].Cache == forever }

// Show answers with the document.
func (p *Page) Show(c *gin.Context) error {
	page := p.index
	page.Policy = policy(string(page.Body), p.Connect)
	return page.Answer(c)
}

// policy lets the page use the files of this server and the inline code of the document, and connect to this server and
// to the origins of connect.
func policy(document string, connect func() []string) string {
	to := "'self'"
	if connect != nil {
		to = strings.Join(append([]string{to}, connect()...), " ")
	}
	return "default-src 'none'; script-src 'self'" + edge.Inlines(document, "script") +
		"; style-src 'self'" + edge.Inlines(document, "style") +
		"; img-src 'self' data:; font-src 'self'; connect-src " + to +
		"; form-action 'none'; base-uri 'none'; frame-ancestors 'none'"
}
