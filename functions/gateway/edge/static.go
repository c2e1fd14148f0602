package edge

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/base64"
	"net/http"
	"strconv"
	"strings"
	"sync"

	"github.com/gin-gonic/gin"
	"github.com/klauspost/compress/gzip"
	"golang.org/x/net/html"
)

// HTMLType is the media type of a page.
const HTMLType = "text/html; charset=utf-8"

// Static is a response that is the same for all clients.
type Static struct {
	Body             []byte
	contentType, tag string
	Cache            string // Cache-Control; empty: the client revalidates each time
	Policy           string // Content-Security-Policy; empty: that of all responses
	zipped           func() []byte
}

// NewStatic makes a response that is the same for all clients.
func NewStatic(contentType string, body []byte) Static {
	return Static{
		Body: body, contentType: contentType, tag: ContentTag(body),
		zipped: sync.OnceValue(func() []byte { return zip(body) }),
	}
}

// NewPage makes a static page with its Content-Security-Policy.
func NewPage(body []byte) Static {
	s := NewStatic(HTMLType, body)
	s.Policy = pagePolicy(string(body))
	return s
}

// zip compresses with gzip's best compression; nil: the content is short, or gzip does not make it shorter.
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

// Answer lets a client cache the body and revalidate it by its tag. The body is compressed once, not for each request.
func (s Static) Answer(c *gin.Context) error {
	c.Header("Cache-Control", cmp.Or(s.Cache, "no-cache"))
	c.Header("Vary", "Accept-Encoding")
	if s.Policy != "" {
		c.Header("Content-Security-Policy", s.Policy)
	}
	body := s.Body
	if acceptsGzip(c.Request.Header) {
		if zipped := s.zipped(); zipped != nil {
			body = zipped
			c.Header("Content-Encoding", "gzip")
		}
	}
	AnswerTagged(c, s.tag, s.contentType, body)
	return nil
}

// acceptsGzip reports whether the client accepts gzip by name.
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

// pagePolicy lets a page use its inline style and script and connect to its own server, and nothing else.
func pagePolicy(page string) string {
	return "default-src 'none'; style-src" + cmp.Or(Inlines(page, "style"), " 'none'") +
		"; script-src" + cmp.Or(Inlines(page, "script"), " 'none'") +
		"; connect-src 'self'; form-action 'none'; base-uri 'none'; frame-ancestors 'none'"
}

// Inlines returns the hashes of the page's inline elements of a kind, script or style, each after a space.
func Inlines(page, element string) string {
	var names strings.Builder
	tokens := html.NewTokenizer(strings.NewReader(page))
	for inside := false; ; {
		switch tokens.Next() {
		case html.ErrorToken: // the end of the page
			return names.String()
		case html.StartTagToken:
			name, _ := tokens.TagName()
			inside = string(name) == element
		case html.TextToken:
			if inside {
				sum := sha256.Sum256(tokens.Raw())
				names.WriteString(" 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'")
			}
		case html.EndTagToken, html.SelfClosingTagToken, html.CommentToken, html.DoctypeToken:
			inside = false
		}
	}
}
