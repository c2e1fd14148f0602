package funchost

import (
	"net/http"
	"time"
)

// maxHeader is what a request's line and headers may have; net/http itself adds 4 KiB to what it is told.
const maxHeader = 16 << 10

// timeouts are how long a request may take its time.
type timeouts struct {
	header time.Duration // until its headers are there
	read   time.Duration // until its body is there
	write  time.Duration // until its answer is taken: body, work, ?wait= and all
	idle   time.Duration // until the next one comes on its connection
}

var serving = timeouts{header: 5 * time.Second, read: time.Minute, write: 2 * time.Minute, idle: 2 * time.Minute}

func (p timeouts) server() *http.Server {
	return &http.Server{
		ReadHeaderTimeout: p.header,
		ReadTimeout:       p.read,
		WriteTimeout:      p.write,
		IdleTimeout:       p.idle,
		MaxHeaderBytes:    maxHeader - 4<<10,
		// A client of HTTP/2 holds many requests by one connection: it must read, and be there.
		HTTP2: &http.HTTP2Config{
			MaxConcurrentStreams: 100, WriteByteTimeout: p.write / 4, SendPingTimeout: p.idle / 2,
		},
	}
}

// fromElsewhere knows the requests that a browser makes for a page of somebody else.
var fromElsewhere http.CrossOriginProtection

// What browsers are told. Nobody adds to these: an answer that says something else has a list of its own.
var (
	noSniff    = []string{"nosniff"}
	noStore    = []string{"no-store"}
	noReferrer = []string{"no-referrer"}
	sameOrigin = []string{"same-origin"}
	noContent  = []string{"default-src 'none'; frame-ancestors 'none'"}
	onlyTLS    = []string{"max-age=31536000"}
	closing    = []string{"close"}
)

// protect has browsers do nothing with an answer but show it. No answer says that other sites may read it: CORS is off.
func protect(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h["X-Content-Type-Options"] = noSniff
		h["Cache-Control"] = noStore
		h["Referrer-Policy"] = noReferrer
		h["Cross-Origin-Opener-Policy"] = sameOrigin
		h["Cross-Origin-Resource-Policy"] = sameOrigin
		h["Content-Security-Policy"] = noContent
		if r.TLS != nil {
			h["Strict-Transport-Security"] = onlyTLS
		}
		if r.ProtoMajor == 1 && len(r.TransferEncoding) > 0 {
			// There may have been a Content-Length too, which net/http takes away: somebody in front of us who
			// believed that one would take what follows for the body, and we for the next request.
			h["Connection"] = closing
		}
		next.ServeHTTP(w, r)
	})
}
