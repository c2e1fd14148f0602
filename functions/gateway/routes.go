package gateway

import (
	"context"
	"net/http"
	"net/url"
	"time"

	"github.com/gin-gonic/gin"

	"github.com/jobweaver/jobweaver/functions/gateway/access"
	"github.com/jobweaver/jobweaver/shared/apierror"
)

// requestPatience bounds the work on one request; an answer that is held with ?wait= counts its own.
const requestPatience = 15 * time.Second

type route struct {
	method, path string
	needs        access.Role
	handle       func(*gin.Context) error
}

// routes is every endpoint, each of which stands in openapi.yaml, and who may come in there.
func (f *Function) routes() []route {
	return []route{
		{http.MethodPost, "/api/jobs", access.Submit, f.submit},
		{http.MethodPost, "/api/jobs/batch", access.Submit, f.submitBatch},
		{http.MethodPost, "/api/jobs/callback", access.Public, f.callback},
		{http.MethodGet, "/api/jobs", access.Read, f.list},
		{http.MethodGet, "/api/jobs/dead", access.Read, f.dead},
		{http.MethodGet, "/api/jobs/:jobId", access.Read, f.get},
		{http.MethodGet, "/api/jobs/:jobId/logs", access.Read, f.logs},
		{http.MethodPost, "/api/jobs/:jobId/cancel", access.Operate, f.cancel},
		{http.MethodPost, "/api/jobs/:jobId/retry", access.Operate, f.retry},
		{http.MethodPost, "/api/jobs/:jobId/reschedule", access.Operate, f.reschedule},
		{http.MethodDelete, "/api/jobs/:jobId", access.Operate, f.remove},
		{http.MethodGet, "/api/jobs/:jobId/deliveries", access.Read, f.jobDeliveries},
		{http.MethodPost, "/api/jobs/:jobId/deliveries/:version/retry", access.Operate, f.retryDelivery},
		{http.MethodGet, "/api/deliveries", access.Read, f.listDeliveries},
		{http.MethodPost, "/api/operations", access.Operate, f.operate},
		{http.MethodGet, "/api/operations", access.Read, f.listOperations},
		{http.MethodGet, "/api/operations/:operationId", access.Read, f.getOperation},
		{http.MethodPost, "/api/operations/:operationId/abort", access.Operate, f.abortOperation},
		{http.MethodPost, "/api/schedules", access.Operate, f.createSchedule},
		{http.MethodGet, "/api/schedules", access.Read, f.listSchedules},
		{http.MethodGet, "/api/schedules/:name", access.Read, f.getSchedule},
		{http.MethodPut, "/api/schedules/:name", access.Operate, f.putSchedule},
		{http.MethodDelete, "/api/schedules/:name", access.Operate, f.deleteSchedule},
		{http.MethodPost, "/api/schedules/:name/pause", access.Operate, f.pauseSchedule},
		{http.MethodPost, "/api/schedules/:name/resume", access.Operate, f.resumeSchedule},
		{http.MethodPost, "/api/schedules/:name/run", access.Operate, f.runSchedule},
		{http.MethodGet, "/api/schedules/:name/ticks", access.Read, f.ticks},
		{http.MethodPost, "/events", access.Submit, f.takeEvents},
		{http.MethodGet, "/api/controls", access.Read, f.listControls},
		{http.MethodGet, "/api/controls/:kind/:name", access.Read, f.getControl},
		{http.MethodPut, "/api/controls/:kind/:name", access.Operate, f.putControl},
		{http.MethodDelete, "/api/controls/:kind/:name", access.Operate, f.deleteControl},
		{http.MethodPost, "/api/controls/:kind/:name/pause", access.Operate, f.pause},
		{http.MethodPost, "/api/controls/:kind/:name/resume", access.Operate, f.resume},
		{http.MethodGet, "/api/audit", access.Admin, f.audit},
		{http.MethodGet, "/api/workers", access.Read, f.workers},
		{http.MethodGet, "/api/job-types", access.Read, f.listJobTypes},
		{http.MethodGet, "/api/job-types/:type", access.Read, f.getJobType},
		{http.MethodGet, "/api/stats", access.Read, f.stats},
		{http.MethodPost, "/api/keys", access.Admin, f.createKey},
		{http.MethodGet, "/api/keys", access.Admin, f.listKeys},
		{http.MethodGet, "/api/keys/:keyId", access.Admin, f.getKey},
		{http.MethodDelete, "/api/keys/:keyId", access.Admin, f.revokeKey},
		{http.MethodPost, "/api/keys/:keyId/rotate", access.Admin, f.rotateKey},
		{http.MethodGet, "/api/webhook-secrets", access.Admin, f.webhookSecrets},
		{http.MethodGet, "/api/me", access.Known, f.me},
		{http.MethodGet, "/api/health", access.Public, f.counted(f.health)},
		{http.MethodGet, "/api/openapi.yaml", access.Public, f.counted(f.contract)},
		{http.MethodGet, "/metrics", access.Read, f.metrics},
		{http.MethodGet, "/", access.Public, f.counted(f.page)},
	}
}

// Handler serves all routes.
func (f *Function) Handler() http.Handler {
	engine := gin.New()
	engine.HandleMethodNotAllowed = true
	engine.RedirectTrailingSlash = false // an unknown path is 404, with our body
	// A name in a path may have any character, a slash too. gin itself would take a + for a space.
	engine.UseEscapedPath, engine.UnescapePathValues = true, false
	engine.RemoteIPHeaders = []string{"X-Forwarded-For"}
	_ = engine.SetTrustedProxies(f.cfg.Door.TrustedProxies) // New has tried
	engine.Use(f.measured(), f.tracing, recovering, f.guard)
	for _, r := range f.routes() {
		handle := f.answering(f.admitting(r.needs, r.handle))
		engine.Handle(r.method, r.path, handle)
		if r.method == http.MethodGet {
			engine.Handle(http.MethodHead, r.path, handle) // net/http leaves the body out
		}
	}
	engine.NoRoute(f.answering(func(c *gin.Context) error {
		return apierror.New(apierror.NotFound, "there is nothing at %s", c.Request.URL.Path)
	}))
	engine.NoMethod(f.answering(func(c *gin.Context) error {
		return apierror.New(apierror.MethodNotAllowed, "%s does not take %s", c.Request.URL.Path, c.Request.Method)
	}))
	return engine
}

// answering turns a handler's error into the answer.
func (f *Function) answering(handle func(*gin.Context) error) gin.HandlerFunc {
	return func(c *gin.Context) {
		for i, param := range c.Params {
			if plain, err := url.PathUnescape(param.Value); err == nil { // net/http has refused what is broken
				c.Params[i].Value = plain
			}
		}
		if err := f.carrying(c, handle); err != nil {
			f.fail(c, err)
		}
	}
}

// patience is the request's context with a limit.
func patience(c *gin.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(c.Request.Context(), requestPatience)
}
