package gateway

import (
	_ "embed"
	"net/http"

	"github.com/gin-gonic/gin"
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

// page is GET /.
func (f *Function) page(c *gin.Context) error {
	c.Header("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'")
	c.Data(http.StatusOK, "text/html; charset=utf-8", pageHTML)
	return nil
}
