package gateway

import (
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"strings"

	"github.com/gin-gonic/gin"

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
	//go:embed page.html
	pageHTML []byte
)

const htmlType = "text/html; charset=utf-8"

// static is an answer that is the same for everybody.
type static struct {
	body             []byte
	contentType, tag string
	policy           string // empty: the one that all answers have
}

func newStatic(contentType string, body []byte) static {
	s := static{body: body, contentType: contentType, tag: contentTag(body)}
	if contentType == htmlType {
		s.policy = pagePolicy(string(body))
	}
	return s
}

// answer lets a client keep the body, and ask by its tag whether it has changed.
func (s static) answer(c *gin.Context) error {
	c.Header("Cache-Control", "no-cache")
	if s.policy != "" {
		c.Header("Content-Security-Policy", s.policy)
	}
	tagged(c, s.tag, s.contentType, s.body)
	return nil
}

// pagePolicy lets a page use the style and the script in it and ask its own server, nothing else.
func pagePolicy(page string) string {
	return "default-src 'none'; style-src " + inline(page, "style") + "; script-src " + inline(page, "script") +
		"; connect-src 'self'; form-action 'none'; base-uri 'none'; frame-ancestors 'none'"
}

// inline names what stands in the page's element by its hash.
func inline(page, element string) string {
	_, content, found := strings.Cut(page, "<"+element+">")
	if !found {
		return "'none'"
	}
	content, _, _ = strings.Cut(content, "</"+element+">")
	sum := sha256.Sum256([]byte(content))
	return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
}

// metrics is GET /metrics: what stands there tells of all owners' jobs.
func (f *Function) metrics(c *gin.Context) error {
	if p := access.Of(c.Request.Context()); !p.Everyone && p.Owner != "" {
		return apierror.New(apierror.Forbidden, "only a key of the installation reads metrics, which tell of all owners")
	}
	telemetry.MetricsHandler().ServeHTTP(c.Writer, c.Request)
	return nil
}
