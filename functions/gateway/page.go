package gateway

import (
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"net/http"
	"strings"

	"github.com/gin-gonic/gin"

	"github.com/jobweaver/jobweaver/functions/gateway/access"
	"github.com/jobweaver/jobweaver/shared/apierror"
	"github.com/jobweaver/jobweaver/shared/telemetry"
)

//go:embed openapi.yaml
var openAPI []byte

//go:embed page.html
var pageHTML []byte

// contract is GET /api/openapi.yaml.
func (f *Function) contract(c *gin.Context) error {
	c.Data(http.StatusOK, "application/yaml", openAPI)
	return nil
}

// metrics is GET /metrics: what stands there tells of all owners' jobs.
func (f *Function) metrics(c *gin.Context) error {
	if p := access.Of(c.Request.Context()); !p.Everyone && p.Owner != "" {
		return apierror.New(apierror.Forbidden, "only a key of the installation reads metrics, which tell of all owners")
	}
	telemetry.MetricsHandler().ServeHTTP(c.Writer, c.Request)
	return nil
}

// pagePolicy lets the page run its own script and ask its own server, nothing else.
var pagePolicy = func() string {
	_, script, _ := strings.Cut(string(pageHTML), "<script>")
	script, _, _ = strings.Cut(script, "</script>")
	sum := sha256.Sum256([]byte(script))
	return "default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-" +
		base64.StdEncoding.EncodeToString(sum[:]) + "'; connect-src 'self'; form-action 'none'; " +
		"base-uri 'none'; frame-ancestors 'none'"
}()

// page is GET /.
func (f *Function) page(c *gin.Context) error {
	c.Header("Content-Security-Policy", pagePolicy)
	c.Data(http.StatusOK, "text/html; charset=utf-8", pageHTML)
	return nil
}
