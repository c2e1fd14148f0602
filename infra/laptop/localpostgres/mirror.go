package localpostgres

import (
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"sync"
	"time"

	"github.com/schollz/progressbar/v3"
)

const repository = "https://repo1.maven.org/maven2"

// barFrom is the size from which a file has a progress bar.
const barFrom = 1 << 20

// mirror serves a repository of files on a port of this machine, and shows the progress of each large one: the
// library that downloads PostgreSQL reports nothing.
type mirror struct {
	server http.Server
	at     string // its URL

	mu  sync.Mutex
	err error // of the repository, the first one
}

func startMirror(repository string, screen io.Writer) (*mirror, error) {
	target, err := url.Parse(repository)
	if err != nil {
		return nil, fmt.Errorf("read the repository's address: %w", err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("open a port: %w", err)
	}
	m := &mirror{at: "http://" + listener.Addr().String()}
	way := http.DefaultTransport.(*http.Transport).Clone()
	way.DisableKeepAlives = true
	m.server.ReadHeaderTimeout = time.Minute
	m.server.Handler = &httputil.ReverseProxy{
		Transport:      way,
		Rewrite:        func(r *httputil.ProxyRequest) { r.SetURL(target) },
		ModifyResponse: func(r *http.Response) error { return showBar(r, screen) },
		ErrorHandler:   m.failed,
		ErrorLog:       slog.NewLogLogger(slog.DiscardHandler, slog.LevelError),
	}
	go func() { _ = m.server.Serve(listener) }() // until stop
	return m, nil
}

func showBar(r *http.Response, screen io.Writer) error {
	if r.ContentLength >= barFrom {
		bar := progressbar.NewOptions64(r.ContentLength, progressbar.OptionSetWriter(screen), progressbar.OptionSetWidth(30),
			progressbar.OptionShowBytes(true), progressbar.OptionClearOnFinish())
		body := progressbar.NewReader(r.Body, bar)
		r.Body = &body
	}
	return nil
}

func (m *mirror) failed(w http.ResponseWriter, _ *http.Request, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.err == nil {
		m.err = err
	}
	w.WriteHeader(http.StatusBadGateway)
}

// stop closes the port, and returns the repository's error, if it did not answer.
func (m *mirror) stop() error {
	_ = m.server.Close()
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.err
}
