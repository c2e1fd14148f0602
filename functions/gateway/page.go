package gateway

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"sync"

	"github.com/gin-gonic/gin"
	"github.com/klauspost/compress/gzip"

	"github.com/jobweaver/jobweaver/functions/gateway/access"
	"github.com/jobweaver/jobweaver/shared/apierror"
	"github.com/jobweaver/jobweaver/shared/telemetry"
)

//go:generate go test -run TestTheReferenceIsMadeFromTheContract -update

var (
	//go:embed openapi.yaml
	contractYAML []byte
	//go:embed openapi.json
	contractJSON []byte // made from openapi.yaml, as reference.html is
	//go:embed reference.html
	referenceHTML []byte
)

const htmlType = "text/html; charset=utf-8"

// static is an answer that is the same for everybody.
type static struct {
	body             []byte
	contentType, tag string
	cache            string // Cache-Control; empty: ask each time whether it has changed
	policy           string // empty: the one that all answers have
	zipped           func() []byte
}

func newStatic(contentType string, body []byte) static {
	return static{
		body: body, contentType: contentType, tag: contentTag(body),
		zipped: sync.OnceValue(func() []byte { return zip(body) }),
	}
}

// newPage is a static page with its policy.
func newPage(body []byte) static {
	s := newStatic(htmlType, body)
	s.policy = pagePolicy(string(body))
	return s
}

// zip compresses as well as gzip can; nil: the content is short, or gzip does not make it shorter.
func zip(content []byte) []byte {
	if len(content) < compressFrom {
		return nil
	}
	var zipped bytes.Buffer
	w, err := gzip.NewWriterLevel(&zipped, gzip.BestCompression)
	if err != nil {
		return nil
	}
	if _, err := w.Write(content); err != nil || w.Close() != nil || zipped.Len() >= len(content) {
		return nil
	}
	return zipped.Bytes()
}

// answer lets a client keep the body, and ask by its tag whether it has changed. It is compressed once, not for each
// request.
func (s static) answer(c *gin.Context) error {
	c.Header("Cache-Control", cmp.Or(s.cache, "no-cache"))
	c.Header("Vary", "Accept-Encoding")
	if s.policy != "" {
		c.Header("Content-Security-Policy", s.policy)
	}
	body := s.body
	if acceptsGzip(c.Request.Header) {
		if zipped := s.zipped(); zipped != nil {
			body = zipped
			c.Header("Content-Encoding", "gzip")
		}
	}
	tagged(c, s.tag, s.contentType, body)
	return nil
}

// acceptsGzip reports whether the client names gzip, and not to refuse it.
func acceptsGzip(h http.Header) bool {
	for accepted := range strings.SplitSeq(strings.Join(h.Values("Accept-Encoding"), ","), ",") {
		coding, weight, _ := strings.Cut(accepted, ";")
		if !strings.EqualFold(strings.TrimSpace(coding), "gzip") {
			continue
		}
		value, weighted := strings.CutPrefix(strings.ReplaceAll(weight, " ", ""), "q=")
		q, err := strconv.ParseFloat(value, 64)
		return !weighted || err == nil && q > 0
	}
	return false
}

// pagePolicy lets a page use the style and the script in it and ask its own server, nothing else.
func pagePolicy(page string) string {
	return "default-src 'none'; style-src" + cmp.Or(inlines(page, "style"), " 'none'") +
		"; script-src" + cmp.Or(inlines(page, "script"), " 'none'") +
		"; connect-src 'self'; form-action 'none'; base-uri 'none'; frame-ancestors 'none'"
}

var inlineElements = map[string]*regexp.Regexp{
	"script": regexp.MustCompile(`(?is)<script(?:\s[^>]*)?>(.*?)</script\s*>`),
	"style":  regexp.MustCompile(`(?is)<style(?:\s[^>]*)?>(.*?)</style\s*>`),
}

// inlines names by their hashes what stands in the page's elements of a kind, each after a space.
func inlines(page, element string) string {
	var names strings.Builder
	for _, found := range inlineElements[element].FindAllStringSubmatch(page, -1) {
		if content := found[1]; content != "" {
			sum := sha256.Sum256([]byte(content))
			names.WriteString(" 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'")
		}
	}
	return names.String()
}

// metrics is GET /metrics: what stands there tells of all owners' jobs.
func (f *Function) metrics(c *gin.Context) error {
	if p := access.Of(c.Request.Context()); !p.Everyone && p.Owner != "" {
		return apierror.New(apierror.Forbidden, "only a key of the installation reads metrics, which tell of all owners")
	}
	telemetry.MetricsHandler().ServeHTTP(c.Writer, c.Request)
	return nil
}
