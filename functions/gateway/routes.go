package gateway

import (
	"context"
	"net/http"
	"net/url"
	"time"

	"github.com/gin-gonic/gin"

	"github.com/jobweaver/jobweaver/functions/gateway/access"
	"github.com/jobweaver/jobweaver/shared/apidb"
	"github.com/jobweaver/jobweaver/shared/apierror"
)

// requestPatience bounds the work on one request; an answer that is held with ?wait= counts its own.
const requestPatience = 15 * time.Second

type route struct {
	method, path string
	handle       func(*gin.Context) error
}

// routes is every endpoint, each of which stands in openapi.yaml.
func (f *Function) routes() []route {
	return []route{
		{http.MethodPost, "/api/jobs", f.submit},
		{http.MethodPost, "/api/jobs/batch", f.submitBatch},
		{http.MethodPost, "/api/jobs/callback", f.callback},
		{http.MethodGet, "/api/jobs", f.list},
		{http.MethodGet, "/api/jobs/dead", f.dead},
		{http.MethodGet, "/api/jobs/:jobId", f.get},
		{http.MethodGet, "/api/jobs/:jobId/logs", f.logs},
		{http.MethodPost, "/api/jobs/:jobId/cancel", f.cancel},
		{http.MethodPost, "/api/jobs/:jobId/retry", f.retry},
		{http.MethodPost, "/api/jobs/:jobId/reschedule", f.reschedule},
		{http.MethodDelete, "/api/jobs/:jobId", f.remove},
		{http.MethodGet, "/api/jobs/:jobId/deliveries", f.jobDeliveries},
		{http.MethodPost, "/api/jobs/:jobId/deliveries/:version/retry", f.retryDelivery},
		{http.MethodGet, "/api/deliveries", f.listDeliveries},
		{http.MethodPost, "/api/operations", f.operate},
		{http.MethodGet, "/api/operations", f.listOperations},
		{http.MethodGet, "/api/operations/:operationId", f.getOperation},
		{http.MethodPost, "/api/operations/:operationId/abort", f.abortOperation},
		{http.MethodPost, "/api/schedules", f.createSchedule},
		{http.MethodGet, "/api/schedules", f.listSchedules},
		{http.MethodGet, "/api/schedules/:name", f.getSchedule},
		{http.MethodPut, "/api/schedules/:name", f.putSchedule},
		{http.MethodDelete, "/api/schedules/:name", f.deleteSchedule},
		{http.MethodPost, "/api/schedules/:name/pause", f.pauseSchedule},
		{http.MethodPost, "/api/schedules/:name/resume", f.resumeSchedule},
		{http.MethodPost, "/api/schedules/:name/run", f.runSchedule},
		{http.MethodGet, "/api/schedules/:name/ticks", f.ticks},
		{http.MethodPost, "/events", f.takeEvents},
		{http.MethodGet, "/api/controls", f.listControls},
		{http.MethodGet, "/api/controls/:kind/:name", f.getControl},
		{http.MethodPut, "/api/controls/:kind/:name", f.putControl},
		{http.MethodDelete, "/api/controls/:kind/:name", f.deleteControl},
		{http.MethodPost, "/api/controls/:kind/:name/pause", f.pause},
		{http.MethodPost, "/api/controls/:kind/:name/resume", f.resume},
		{http.MethodGet, "/api/workers", f.workers},
		{http.MethodGet, "/api/job-types", f.listJobTypes},
		{http.MethodGet, "/api/job-types/:type", f.getJobType},
		{http.MethodGet, "/api/stats", f.stats},
		{http.MethodGet, "/api/health", f.health},
		{http.MethodGet, "/api/openapi.yaml", f.contract},
		{http.MethodGet, "/", f.page},
	}
}

// Handler serves all routes.
func (f *Function) Handler() http.Handler {
	gin.SetMode(gin.ReleaseMode)
	engine := gin.New()
	engine.HandleMethodNotAllowed = true
	engine.RedirectTrailingSlash = false // an unknown path is 404, with our body
	// A name in a path may have any character, a slash too. gin itself would take a + for a space.
	engine.UseEscapedPath, engine.UnescapePathValues = true, false
	engine.Use(trace, recovering, f.admit)
	for _, r := range f.routes() {
		engine.Handle(r.method, r.path, f.answering(r.handle))
	}
	engine.NoRoute(f.answering(func(c *gin.Context) error {
		return apierror.New(apierror.NotFound, "there is nothing at %s", c.Request.URL.Path)
	}))
	engine.NoMethod(f.answering(func(c *gin.Context) error {
		return apierror.New(apierror.MethodNotAllowed, "%s does not take %s", c.Request.URL.Path, c.Request.Method)
	}))
	return engine
}

// admit says who the request is from.
func (f *Function) admit(c *gin.Context) {
	everyone := access.Principal{Everyone: true, Actor: "anonymous", Roles: []access.Role{access.Admin}}
	c.Request = c.Request.WithContext(access.With(c.Request.Context(), everyone))
}

// whose is the owner whose things the request sees.
func whose(c *gin.Context) apidb.Owner {
	p := access.Of(c.Request.Context())
	if p.Everyone {
		return apidb.Everyone
	}
	return apidb.OwnerOf(p.Owner)
}

// answering turns a handler's error into the answer.
func (f *Function) answering(handle func(*gin.Context) error) gin.HandlerFunc {
	return func(c *gin.Context) {
		for i, param := range c.Params {
			if plain, err := url.PathUnescape(param.Value); err == nil { // net/http has refused what is broken
				c.Params[i].Value = plain
			}
		}
		if err := handle(c); err != nil {
			f.fail(c, err)
		}
	}
}

// patience is the request's context with a limit.
func patience(c *gin.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(c.Request.Context(), requestPatience)
}
