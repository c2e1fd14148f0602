package edge

import (
	"net/http"

	"github.com/klauspost/compress/gzhttp"
	"github.com/klauspost/compress/gzip"
)

const (
	compressFrom  = 1 << 10 // bytes of an answer; a shorter one is sent in one packet anyway
	compressNoise = 32      // bytes at most that are added, so that the length tells less of the content (BREACH)
)

// Compress compresses answers to reads for clients that ask for gzip. Answers to writes are short. What is at
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
