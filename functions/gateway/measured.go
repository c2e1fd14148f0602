package gateway

import (
	"net/http"
	"regexp"
	"strings"

	"github.com/gin-gonic/gin"

	"github.com/jobweaver/jobweaver/shared/telemetry"
)

// routeParam is gin's way to write a parameter.
var routeParam = regexp.MustCompile(`:(\w+)`)

// measured counts requests by their routes, as the contract writes them.
func (f *Function) measured() gin.HandlerFunc {
	meter, labels := telemetry.NewMeter(Name), map[string]string{}
	for _, r := range f.routes() {
		labels[r.path] = routeParam.ReplaceAllString(r.path, "{$1}")
	}
	return func(c *gin.Context) {
		if c.FullPath() == "/metrics" {
			return
		}
		answered := meter.Request(c.Request.Method)
		route, known := labels[c.FullPath()]
		if !known {
			route = telemetry.RouteUnknown
		}
		finished := false
		defer func() {
			status := c.Writer.Status()
			if !finished { // a panic that nobody turned into an answer
				status = http.StatusInternalServerError
			}
			_, preferred := preference(c.Request.Header, "wait")
			answered(route, status, preferred || strings.Contains(c.Request.URL.RawQuery, "wait="))
		}()
		c.Next()
		finished = true
	}
}
