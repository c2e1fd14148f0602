package gateway

import (
	"context"
	"net/http"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strings"
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
		{http.MethodPost, "/api/jobs/batch", access.Submit, bare(f.submitBatch)},
		{http.MethodPost, "/api/jobs/callback", access.Public, bare(f.callback)},
		{http.MethodGet, "/api/jobs", access.Read, f.list},
		{http.MethodGet, "/api/jobs/dead", access.Read, f.dead},
		{http.MethodGet, "/api/jobs/:jobId", access.Read, f.get},
		{http.MethodGet, "/api/jobs/:jobId/logs", access.Read, f.logs},
		{http.MethodPost, "/api/jobs/:jobId/cancel", access.Operate, bare(bodiless(f.cancel))},
		{http.MethodPost, "/api/jobs/:jobId/retry", access.Operate, bare(bodiless(f.retry))},
		{http.MethodPost, "/api/jobs/:jobId/reschedule", access.Operate, bare(f.reschedule)},
		{http.MethodPost, "/api/jobs/:jobId/run-again", access.Submit, bare(f.runAgain)},
		{http.MethodPatch, "/api/jobs/:jobId", access.Operate, bare(f.changeJob)},
		{http.MethodDelete, "/api/jobs/:jobId", access.Operate, bare(bodiless(f.remove))},
		{http.MethodGet, "/api/jobs/:jobId/deliveries", access.Read, bare(f.jobDeliveries)},
		{http.MethodPost, "/api/jobs/:jobId/deliveries/:version/retry", access.Operate, bare(bodiless(f.retryDelivery))},
		{http.MethodGet, "/api/deliveries", access.Read, f.listDeliveries},
		{http.MethodPost, "/api/operations", access.Operate, bare(f.operate)},
		{http.MethodGet, "/api/operations", access.Read, f.listOperations},
		{http.MethodGet, "/api/operations/:operationId", access.Read, f.getOperation},
		{http.MethodPost, "/api/operations/:operationId/abort", access.Operate, bare(bodiless(f.abortOperation))},
		{http.MethodPost, "/api/schedules", access.Operate, bare(f.createSchedule)},
		{http.MethodGet, "/api/schedules", access.Read, f.listSchedules},
		{http.MethodGet, "/api/schedules/:name", access.Read, f.getSchedule},
		{http.MethodPut, "/api/schedules/:name", access.Operate, f.putSchedule},
		{http.MethodDelete, "/api/schedules/:name", access.Operate, bodiless(f.deleteSchedule)},
		{http.MethodPost, "/api/schedules/:name/pause", access.Operate, bodiless(f.pauseSchedule)},
		{http.MethodPost, "/api/schedules/:name/resume", access.Operate, bodiless(f.resumeSchedule)},
		{http.MethodPost, "/api/schedules/:name/run", access.Operate, bodiless(f.runSchedule)},
		{http.MethodGet, "/api/schedules/:name/ticks", access.Read, f.ticks},
		{http.MethodPost, "/events", access.Submit, f.takeEvents},
		{http.MethodPost, hookPath, access.Public, bare(f.receiveHook)},
		{http.MethodGet, "/api/hooks", access.Read, bare(f.listHooks)},
		{http.MethodGet, "/api/controls", access.Read, bare(f.listControls)},
		{http.MethodGet, "/api/controls/:kind/:name", access.Read, bare(f.getControl)},
		{http.MethodPut, "/api/controls/:kind/:name", access.Operate, bare(f.putControl)},
		{http.MethodDelete, "/api/controls/:kind/:name", access.Operate, bare(bodiless(f.deleteControl))},
		{http.MethodPost, "/api/controls/:kind/:name/pause", access.Operate, bare(bodiless(f.pause))},
		{http.MethodPost, "/api/controls/:kind/:name/resume", access.Operate, bare(bodiless(f.resume))},
		{http.MethodGet, "/api/audit", access.Admin, f.audit},
		{http.MethodGet, "/api/rejected", access.Installation, f.listRejected},
		{http.MethodGet, "/api/rejected/:rejectedId", access.Installation, bare(f.getRejected)},
		{http.MethodPost, "/api/rejected/:rejectedId/redrive", access.Installation, bare(bodiless(f.redriveRejected))},
		{http.MethodDelete, "/api/rejected/:rejectedId", access.Installation, bare(bodiless(f.discardRejected))},
		{http.MethodGet, "/api/workers", access.Read, bare(f.workers)},
		{http.MethodPost, "/api/workers/claim", access.Work, bare(f.claimWork)},
		{http.MethodPost, "/api/workers/beat", access.Work, bare(f.beatWork)},
		{http.MethodPost, "/api/workers/settle", access.Work, bare(f.settleWork)},
		{http.MethodGet, "/api/job-types", access.Read, bare(f.listJobTypes)},
		{http.MethodGet, "/api/job-types/:type", access.Read, bare(f.getJobType)},
		{http.MethodGet, "/api/stats", access.Read, f.stats},
		{http.MethodGet, "/api/lag", access.Installation, bare(f.lag)},
		{http.MethodGet, streamPath, access.Read, f.stream},
		{http.MethodPost, "/api/keys", access.Admin, bare(f.createKey)},
		{http.MethodGet, "/api/keys", access.Admin, f.listKeys},
		{http.MethodGet, "/api/keys/:keyId", access.Admin, bare(f.getKey)},
		{http.MethodDelete, "/api/keys/:keyId", access.Admin, bare(bodiless(f.revokeKey))},
		{http.MethodPost, "/api/keys/:keyId/rotate", access.Admin, bare(f.rotateKey)},
		{http.MethodGet, "/api/webhook-secrets", access.Admin, f.webhookSecrets},
		{http.MethodGet, "/api/me", access.Known, bare(f.me)},
		{http.MethodGet, "/api/login", access.Public, f.counted(bare(f.login))},
		{http.MethodGet, "/api/health", access.Public, f.counted(f.health)},
		{http.MethodGet, "/api/openapi.yaml", access.Public, f.counted(newStatic("application/yaml", contractYAML).answer)},
		{http.MethodGet, "/api/openapi.json", access.Public, f.counted(newStatic(jsonType, contractJSON).answer)},
		{http.MethodGet, "/api/reference", access.Public, f.counted(newPage(referenceHTML).answer)},
		{http.MethodGet, "/metrics", access.Read, f.metrics},
		{http.MethodGet, "/", access.Public, f.counted(f.page.show)},
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
	engine.Use(f.measured(), f.tracing, recovering, f.guard, f.checkTrace)
	for _, r := range f.routes() {
		handle := f.answering(f.admitting(r.needs, r.handle))
		engine.Handle(r.method, r.path, handle)
		if r.method == http.MethodGet {
			engine.Handle(http.MethodHead, r.path, handle) // net/http leaves the body out
		}
	}
	engine.NoRoute(f.answering(f.elsewhere))
	f.refuseMethods(engine)
	return f.aliases(engine)
}

// elsewhere answers at an address that is no endpoint: with a part of the dashboard, or that there is nothing.
func (f *Function) elsewhere(c *gin.Context) error {
	at := c.Request.URL.Path
	if plain := path.Clean(at); plain != at {
		return apierror.New(apierror.NotFound, "there is nothing at %s; did you mean %s?", at, plain)
	}
	if show := f.page.at(c.Request); show != nil {
		c.Set(dashboardKey, true)
		return f.counted(show)(c)
	}
	return apierror.New(apierror.NotFound, "there is nothing at %s", at)
}

// refuseMethods answers 405 with the methods that a path does take. gin counts those of every pattern that matches a
// path, and prefers a pattern with the method to the path itself: DELETE /api/jobs/dead would be /api/jobs/:jobId's.
func (f *Function) refuseMethods(engine *gin.Engine) {
	allow, used := map[string][]string{}, []string{http.MethodHead}
	for _, r := range f.routes() {
		allow[r.path] = append(allow[r.path], r.method)
		if r.method == http.MethodGet {
			allow[r.path] = append(allow[r.path], http.MethodHead)
		}
		if !slices.Contains(used, r.method) {
			used = append(used, r.method)
		}
	}
	patterns := http.NewServeMux() // which finds the pattern of a path, whatever the method
	refuse := f.answering(func(c *gin.Context) error {
		_, pattern := patterns.Handler(c.Request)
		c.Header("Allow", strings.Join(allow[ginPath(pattern)], ", "))
		return apierror.New(apierror.MethodNotAllowed, "%s does not take %s", c.Request.URL.Path, c.Request.Method)
	})
	for path, methods := range allow {
		slices.Sort(methods)
		patterns.Handle(muxPath(path), http.NotFoundHandler())
		for _, method := range used {
			if !slices.Contains(methods, method) {
				engine.Handle(method, path, refuse)
			}
		}
	}
	engine.NoMethod(refuse) // of a method that no path takes
}

// muxPath is a path of gin in net/http's form, ginPath the way back.
func muxPath(path string) string {
	if path == "/" {
		return "/{$}"
	}
	return ginParam.ReplaceAllString(path, "{$1}")
}

func ginPath(pattern string) string {
	if pattern == "/{$}" {
		return "/"
	}
	return muxParam.ReplaceAllString(pattern, ":$1")
}

var ginParam, muxParam = regexp.MustCompile(`:(\w+)`), regexp.MustCompile(`\{(\w+)\}`)

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
