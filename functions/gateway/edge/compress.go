package edge

import (
	"net/http"

	"github.com/klauspost/compress/gzhttp"
	"github.com/klauspost/compress/gzip"
)

const (
	compressFrom  = 1 << 10 // bytes of a body; a shorter one fits into one packet anyway
	compressNoise = 32      // bytes at most that are added, so that the length reveals less about the content (BREACH)
)

// Compress compresses responses to reads for clients that accept gzip. Responses to writes are short. The response at
// the path never is not compressed: the events of a stream would wait in the compressor.
func Compress(next http.Handler, never string) (http.Handler, error) {
	wrap, err := gzhttp.NewWrapper(
		gzhttp.EnableZstd(false), gzhttp.CompressionLevel(gzip.BestSpeed), gzhttp.MinSize(compressFrom),
		gzhttp.ContentTypes([]string{"application/json", "application/problem+json", "application/yaml", "text/html"}),
		gzhttp.RandomJitter(compressNoise, 0, false),
	)
	if err != nil {
		return nil, err
	}
	reads := wrap(next)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if (r.Method == http.MethodGet || r.Method == http.MethodHead) && r.URL.Path != never {
			reads(w, r)
			return
		}
		next.ServeHTTP(w, r)
	}), nil
}
