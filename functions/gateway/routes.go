package gateway

import (
	"net/http"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/gin-gonic/gin"

	"github.com/jobweaver/jobweaver/functions/gateway/access"
	"github.com/jobweaver/jobweaver/functions/gateway/edge"
	"github.com/jobweaver/jobweaver/shared/apierror"
)

// noQuery and noBody keep the table of routes to one line an endpoint.
var noQuery, noBody = edge.WithoutQuery, edge.WithoutBody

type route struct {
	method, path string
	needs        access.Role
	handle       func(*gin.Context) error
}

// routes is every endpoint, each of which stands in openapi.yaml, and who may come in there.
func (f *Function) routes() []route {
	return []route{
		{http.MethodPost, "/api/jobs", access.Submit, f.submit},
		{http.MethodPost, "/api/jobs/batch", access.Submit, noQuery(f.submitBatch)},
		{http.MethodPost, "/api/jobs/callback", access.Public, noQuery(f.callback)},
		{http.MethodGet, "/api/jobs", access.Read, f.list},
		{http.MethodGet, "/api/jobs/dead", access.Read, f.dead},
		{http.MethodGet, "/api/jobs/:jobId", access.Read, f.get},
		{http.MethodGet, "/api/jobs/:jobId/logs", access.Read, f.logs},
		{http.MethodPost, "/api/jobs/:jobId/cancel", access.Operate, noQuery(noBody(f.cancel))},
		{http.MethodPost, "/api/jobs/:jobId/retry", access.Operate, noQuery(noBody(f.retry))},
		{http.MethodPost, "/api/jobs/:jobId/reschedule", access.Operate, noQuery(f.reschedule)},
		{http.MethodPost, "/api/jobs/:jobId/run-again", access.Submit, noQuery(f.runAgain)},
		{http.MethodPatch, "/api/jobs/:jobId", access.Operate, noQuery(f.changeJob)},
		{http.MethodDelete, "/api/jobs/:jobId", access.Operate, noQuery(noBody(f.remove))},
		{http.MethodGet, "/api/jobs/:jobId/deliveries", access.Read, noQuery(f.jobDeliveries)},
		{http.MethodPost, "/api/jobs/:jobId/deliveries/:version/retry", access.Operate, noQuery(noBody(f.retryDelivery))},
		{http.MethodGet, "/api/deliveries", access.Read, f.listDeliveries},
		{http.MethodPost, "/api/operations", access.Operate, noQuery(f.operate)},
		{http.MethodGet, "/api/operations", access.Read, f.listOperations},
		{http.MethodGet, "/api/operations/:operationId", access.Read, f.getOperation},
		{http.MethodPost, "/api/operations/:operationId/abort", access.Operate, noQuery(noBody(f.abortOperation))},
		{http.MethodPost, "/api/schedules", access.Operate, noQuery(f.createSchedule)},
		{http.MethodGet, "/api/schedules", access.Read, f.listSchedules},
		{http.MethodGet, "/api/schedules/:name", access.Read, f.getSchedule},
		{http.MethodPut, "/api/schedules/:name", access.Operate, f.putSchedule},
		{http.MethodDelete, "/api/schedules/:name", access.Operate, noBody(f.deleteSchedule)},
		{http.MethodPost, "/api/schedules/:name/pause", access.Operate, noBody(f.pauseSchedule)},
		{http.MethodPost, "/api/schedules/:name/resume", access.Operate, noBody(f.resumeSchedule)},
		{http.MethodPost, "/api/schedules/:name/run", access.Operate, noBody(f.runSchedule)},
		{http.MethodGet, "/api/schedules/:name/ticks", access.Read, f.ticks},
		{http.MethodPost, "/events", access.Submit, f.takeEvents},
		{http.MethodPost, hookPath, access.Public, noQuery(f.receiveHook)},
		{http.MethodGet, "/api/hooks", access.Read, noQuery(f.listHooks)},
		{http.MethodGet, "/api/controls", access.Read, noQuery(f.listControls)},
		{http.MethodGet, "/api/controls/:kind/:name", access.Read, noQuery(f.getControl)},
		{http.MethodPut, "/api/controls/:kind/:name", access.Operate, noQuery(f.putControl)},
		{http.MethodDelete, "/api/controls/:kind/:name", access.Operate, noQuery(noBody(f.deleteControl))},
		{http.MethodPost, "/api/controls/:kind/:name/pause", access.Operate, noQuery(noBody(f.pause))},
		{http.MethodPost, "/api/controls/:kind/:name/resume", access.Operate, noQuery(noBody(f.resume))},
		{http.MethodGet, "/api/audit", access.Admin, f.audit},
		{http.MethodGet, "/api/rejected", access.Installation, f.listRejected},
		{http.MethodGet, "/api/rejected/:rejectedId", access.Installation, noQuery(f.getRejected)},
		{http.MethodPost, "/api/rejected/:rejectedId/redrive", access.Installation, noQuery(noBody(f.redriveRejected))},
		{http.MethodDelete, "/api/rejected/:rejectedId", access.Installation, noQuery(noBody(f.discardRejected))},
		{http.MethodGet, "/api/workers", access.Read, noQuery(f.workers)},
		{http.MethodPost, "/api/workers/claim", access.Work, noQuery(f.claimWork)},
		{http.MethodPost, "/api/workers/beat", access.Work, noQuery(f.beatWork)},
		{http.MethodPost, "/api/workers/settle", access.Work, noQuery(f.settleWork)},
		{http.MethodGet, "/api/job-types", access.Read, noQuery(f.listJobTypes)},
		{http.MethodGet, "/api/job-types/:type", access.Read, noQuery(f.getJobType)},
		{http.MethodGet, "/api/stats", access.Read, f.stats},
		{http.MethodGet, "/api/lag", access.Installation, noQuery(f.lag)},
		{http.MethodGet, streamPath, access.Read, f.stream},
		{http.MethodPost, "/api/keys", access.Admin, noQuery(f.createKey)},
		{http.MethodGet, "/api/keys", access.Admin, f.listKeys},
		{http.MethodGet, "/api/keys/:keyId", access.Admin, noQuery(f.getKey)},
		{http.MethodDelete, "/api/keys/:keyId", access.Admin, noQuery(noBody(f.revokeKey))},
		{http.MethodPost, "/api/keys/:keyId/rotate", access.Admin, noQuery(f.rotateKey)},
		{http.MethodGet, "/api/webhook-secrets", access.Admin, f.webhookSecrets},
		{http.MethodGet, "/api/me", access.Known, noQuery(f.me)},
		{http.MethodGet, "/api/login", access.Public, f.counted(noQuery(f.login))},
		{http.MethodGet, "/api/health", access.Public, f.counted(f.health)},
		{http.MethodGet, "/api/openapi.yaml", access.Public, f.counted(edge.NewStatic(yamlType, contractYAML).Answer)},
		{http.MethodGet, "/api/openapi.json", access.Public, f.counted(edge.NewStatic(jsonType, contractJSON).Answer)},
		{http.MethodGet, "/api/reference", access.Public, f.counted(edge.NewPage(referenceHTML).Answer)},
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
	_ = engine.SetTrustedProxies(f.cfg.Limits.TrustedProxies) // New has tried
	engine.Use(f.measured(), f.tracing, edge.Recover, f.guard, f.checkTrace)
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
		if err := f.limits.Carry(c, handle); err != nil {
			f.fail(c, err)
		}
	}
}
