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

// dashboardKey marks requests for files of the dashboard in the request's context, so that they do not count as unknown
// paths.
const dashboardKey = "dashboard"

// routeParam matches a parameter in gin's notation.
var routeParam = regexp.MustCompile(`:(\w+)`)

// measured counts requests by route, in the notation of the contract.
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
			if !finished { // a panic that Recover did not turn into a response
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

// metrics is GET /metrics. The metrics cover the jobs of all owners.
func (f *Function) metrics(c *gin.Context) error {
	if p := access.Of(c.Request.Context()); p.Owner != "" {
		return apierror.New(apierror.Forbidden, "only a key of the installation reads metrics, which cover all owners")
	}
	telemetry.MetricsHandler().ServeHTTP(c.Writer, c.Request)
	return nil
}
