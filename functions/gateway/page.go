package gateway

import (
	_ "embed"
	"net/http"

	"github.com/gin-gonic/gin"

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

// metrics is GET /metrics: what stands there tells of all owners' jobs, and of nobody's by name.
func (f *Function) metrics(c *gin.Context) error {
	telemetry.MetricsHandler().ServeHTTP(c.Writer, c.Request)
	return nil
}

// page is GET /.
func (f *Function) page(c *gin.Context) error {
	c.Header("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'")
	c.Data(http.StatusOK, "text/html; charset=utf-8", pageHTML)
	return nil
}
