package gateway

import (
	"net/http"
	"regexp"
	"strings"

	"github.com/gin-gonic/gin"

	"github.com/jobweaver/jobweaver/functions/gateway/access"
	"github.com/jobweaver/jobweaver/functions/gateway/edge"
	"github.com/jobweaver/jobweaver/shared/apierror"
	"github.com/jobweaver/jobweaver/shared/telemetry"
)

// dashboardKey marks requests for parts of the dashboard in the request's context: they do not count as unknown paths.
const dashboardKey = "dashboard"

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
		finished := false
		defer func() {
			route, known := labels[c.FullPath()]
			switch {
			case c.GetBool(dashboardKey):
				route = "/"
			case !known:
				route = telemetry.RouteUnknown
			}
			status := c.Writer.Status()
			if !finished { // a panic that nobody turned into an answer
				status = http.StatusInternalServerError
			}
			_, preferred := edge.Preference(c.Request.Header, "wait")
			held := preferred || strings.Contains(c.Request.URL.RawQuery, "wait=") || route == streamPath || route == claimPath
			answered(route, status, held)
		}()
		c.Next()
		finished = true
	}
}

// metrics is GET /metrics. The metrics count the jobs of all owners.
func (f *Function) metrics(c *gin.Context) error {
	if p := access.Of(c.Request.Context()); !p.Everyone && p.Owner != "" {
		return apierror.New(apierror.Forbidden, "only a key of the installation reads metrics, which tell of all owners")
	}
	telemetry.MetricsHandler().ServeHTTP(c.Writer, c.Request)
	return nil
}
