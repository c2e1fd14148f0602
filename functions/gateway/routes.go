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
	"github.com/jobweaver/jobweaver/functions/gateway/aliases"
	"github.com/jobweaver/jobweaver/functions/gateway/edge"
	"github.com/jobweaver/jobweaver/shared/apierror"
)

// These wrappers keep the table of routes to one line for each endpoint.
var noQuery, noBody, noMatch = edge.WithoutQuery, edge.WithoutBody, edge.WithoutMatch

// Paths that other files name, too, or that are long. hookPath takes signed requests of other systems; each system has
// a hook.
const (
	deliverAgainPath = "/api/jobs/:jobId/deliveries/:version/retry"

	streamPath = "/api/stream"
	claimPath  = "/api/workers/claim"
	hookPath   = "/hooks/:name"
)

type route struct {
	method, path string
	needs        access.Role
	handle       func(*gin.Context) error
}

// routes returns every endpoint, each of which is in openapi.yaml, with the role that it needs.
func (f *Function) routes() []route {
	return append(slices.Concat(f.workerRoutes(), f.batchRoutes(), f.alertRoutes()), []route{
		{http.MethodPost, "/api/jobs", access.Submit, f.api.submit.Submit},
		{http.MethodPost, "/api/jobs/batch", access.Submit, noQuery(f.api.submit.SubmitBatch)},
		{http.MethodPost, "/api/jobs/callback", access.Public, noQuery(f.api.callbacks.Receive)},
		{http.MethodGet, "/api/jobs", access.Read, f.api.jobs.List},
		{http.MethodGet, "/api/jobs/dead", access.Read, f.api.jobs.ListDead},
		{http.MethodGet, "/api/jobs/dead/groups", access.Read, f.api.jobs.ListGroups},
		{http.MethodGet, "/api/jobs/:jobId", access.Read, f.api.jobs.Get},
		{http.MethodGet, "/api/jobs/:jobId/logs", access.Read, f.api.jobs.GetLogs},
		{http.MethodPost, "/api/jobs/:jobId/cancel", access.Operate, noQuery(noBody(f.api.commands.Cancel))},
		{http.MethodPost, "/api/jobs/:jobId/retry", access.Operate, noQuery(noBody(f.api.commands.Retry))},
		{http.MethodPost, "/api/jobs/:jobId/reschedule", access.Operate, noQuery(f.api.commands.Reschedule)},
		{http.MethodPost, "/api/jobs/:jobId/run-again", access.Submit, noQuery(noMatch(f.api.submit.RunAgain))},
		{http.MethodPatch, "/api/jobs/:jobId", access.Operate, noQuery(f.api.commands.Change)},
		{http.MethodDelete, "/api/jobs/:jobId", access.Operate, noQuery(noBody(f.api.commands.Delete))},
		{http.MethodGet, "/api/jobs/:jobId/deliveries", access.Read, noQuery(f.api.deliveries.ListOfJob)},
		{http.MethodPost, deliverAgainPath, access.Operate, noQuery(noBody(noMatch(f.api.deliveries.Retry)))},
		{http.MethodGet, "/api/deliveries", access.Read, f.api.deliveries.List},
		{http.MethodPost, "/api/operations", access.Operate, noQuery(f.api.operations.Create)},
		{http.MethodGet, "/api/operations", access.Read, f.api.operations.List},
		{http.MethodGet, "/api/operations/:operationId", access.Read, f.api.operations.Get},
		{http.MethodPost, "/api/operations/:operationId/abort", access.Operate, noQuery(noBody(f.api.operations.Abort))},
		{http.MethodPost, "/api/schedules", access.Operate, noQuery(f.api.schedules.Create)},
		{http.MethodGet, "/api/schedules", access.Read, f.api.schedules.List},
		{http.MethodGet, "/api/schedules/:name", access.Read, f.api.schedules.Get},
		{http.MethodPut, "/api/schedules/:name", access.Operate, f.api.schedules.Put},
		{http.MethodDelete, "/api/schedules/:name", access.Operate, noBody(f.api.schedules.Delete)},
		{http.MethodPost, "/api/schedules/:name/pause", access.Operate, noBody(f.api.schedules.Pause)},
		{http.MethodPost, "/api/schedules/:name/resume", access.Operate, noBody(f.api.schedules.Resume)},
		{http.MethodPost, "/api/schedules/:name/run", access.Operate, noBody(f.api.schedules.Run)},
		{http.MethodGet, "/api/schedules/:name/ticks", access.Read, f.api.schedules.ListTicks},
		{http.MethodGet, "/api/schedule-times", access.Read, f.api.schedules.ListTimes},
		{http.MethodPost, "/events", access.Submit, f.api.submit.SubmitEvents},
		{http.MethodPost, hookPath, access.Public, noQuery(f.api.hooks.Receive)},
		{http.MethodGet, "/api/hooks", access.Read, noQuery(f.api.hooks.List)},
		{http.MethodGet, "/api/controls", access.Read, noQuery(f.api.controls.List)},
		{http.MethodGet, "/api/controls/:kind/:name", access.Read, noQuery(f.api.controls.Get)},
		{http.MethodPut, "/api/controls/:kind/:name", access.Operate, noQuery(f.api.controls.Put)},
		{http.MethodDelete, "/api/controls/:kind/:name", access.Operate, noQuery(noBody(f.api.controls.Delete))},
		{http.MethodPost, "/api/controls/:kind/:name/pause", access.Operate, noQuery(noBody(f.api.controls.Pause))},
		{http.MethodPost, "/api/controls/:kind/:name/resume", access.Operate, noQuery(noBody(f.api.controls.Resume))},
		{http.MethodGet, "/api/queues", access.Read, noQuery(f.api.queues.List)},
		{http.MethodGet, "/api/queues/:queue", access.Read, noQuery(f.api.queues.Get)},
		{http.MethodPut, "/api/queues/:queue", access.Installation, noQuery(f.api.queues.Put)},
		{http.MethodDelete, "/api/queues/:queue", access.Installation, noBody(f.api.queues.Delete)},
		{http.MethodGet, "/api/queues/:queue/shares", access.Read, f.api.monitor.GetShares},
		{http.MethodGet, "/api/audit", access.Admin, f.auditLog.List},
		{http.MethodGet, "/api/rejected", access.Installation, f.api.rejected.List},
		{http.MethodGet, "/api/rejected/:rejectedId", access.Installation, noQuery(f.api.rejected.Get)},
		{http.MethodPost, "/api/rejected/:rejectedId/redrive", access.Installation, noQuery(noBody(f.api.rejected.Redrive))},
		{http.MethodDelete, "/api/rejected/:rejectedId", access.Installation, noQuery(noBody(f.api.rejected.Discard))},
		{http.MethodGet, "/api/job-types", access.Read, noQuery(f.api.jobTypes.List)},
		{http.MethodGet, "/api/job-types/:type", access.Read, noQuery(f.api.jobTypes.Get)},
		{http.MethodPut, "/api/job-types/:type", access.Work, noQuery(f.api.jobTypes.Put)},
		{http.MethodPut, "/api/job-types/:type/schedules", access.Work, noQuery(f.api.schedules.Define)},
		{http.MethodDelete, "/api/job-types/:type", access.Operate, noQuery(noBody(f.api.jobTypes.Delete))},
		{http.MethodGet, "/api/stats", access.Read, f.api.monitor.GetStats},
		{http.MethodGet, "/api/owners", access.Installation, f.api.monitor.ListOwners},
		{http.MethodGet, "/api/lag", access.Installation, noQuery(f.api.monitor.GetLag)},
		{http.MethodGet, streamPath, access.Read, f.api.stream.Get},
		{http.MethodPost, "/api/keys", access.Admin, noQuery(f.api.keys.Create)},
		{http.MethodGet, "/api/keys", access.Admin, f.api.keys.List},
		{http.MethodGet, "/api/keys/:keyId", access.Admin, noQuery(f.api.keys.Get)},
		{http.MethodDelete, "/api/keys/:keyId", access.Admin, noQuery(noBody(f.api.keys.Revoke))},
		{http.MethodPost, "/api/keys/:keyId/rotate", access.Admin, noQuery(f.api.keys.Rotate)},
		{http.MethodGet, "/api/webhook-secrets", access.Admin, f.api.webhookSecrets.Get},
		{http.MethodGet, "/api/me", access.Known, noQuery(f.api.keys.Me)},
		{http.MethodGet, "/api/login", access.Public, f.limited(noQuery(f.api.login.Get))},
		{http.MethodGet, "/api/health", access.Public, f.limited(f.api.monitor.GetHealth)},
		{http.MethodGet, "/api/openapi.yaml", access.Public, f.limited(contractPages().yaml.Answer)},
		{http.MethodGet, "/api/openapi.json", access.Public, f.limited(contractPages().json.Answer)},
		{http.MethodGet, "/api/reference", access.Public, f.limited(contractPages().reference.Answer)},
		{http.MethodGet, "/metrics", access.Read, f.metrics},
		{http.MethodGet, "/", access.Public, f.limited(f.page.Show)},
	}...)
}

func (f *Function) workerRoutes() []route {
	return []route{
		{http.MethodGet, "/api/workers", access.Read, noQuery(f.api.monitor.ListWorkers)},
		{http.MethodPost, claimPath, access.Work, noQuery(f.api.pull.Claim)},
		{http.MethodPut, "/api/workers/:workerId/drain", access.Installation, noQuery(noBody(f.api.controls.Drain))},
		{http.MethodDelete, "/api/workers/:workerId/drain", access.Installation, noQuery(noBody(f.api.controls.Undrain))},
		{http.MethodPost, "/api/workers/heartbeat", access.Work, noQuery(f.api.pull.Heartbeat)},
		{http.MethodPost, "/api/workers/checkpoint", access.Work, noQuery(f.api.pull.Checkpoint)},
		{http.MethodPost, "/api/workers/wait", access.Work, noQuery(f.api.waits.Ask)},
		{http.MethodPost, "/api/workers/steps", access.Work, noQuery(f.api.waits.SaveStep)},
		{http.MethodPost, "/api/workers/steps/read", access.Work, noQuery(f.api.waits.ReadSteps)},
		{http.MethodPost, "/api/workers/settle", access.Work, noQuery(f.api.pull.Settle)},
	}
}

// batchRoutes returns the routes of batches and flows.
func (f *Function) batchRoutes() []route {
	return []route{
		{http.MethodPost, "/api/batches", access.Submit, noQuery(f.api.batches.Create)},
		{http.MethodGet, "/api/batches", access.Read, f.api.batches.List},
		{http.MethodGet, "/api/batches/:batchId", access.Read, f.api.batches.Get},
		{http.MethodPost, "/api/batches/:batchId/close", access.Submit, noQuery(noBody(f.api.batches.Close))},
		{http.MethodPost, "/api/batches/:batchId/cancel", access.Operate, noQuery(noBody(f.api.batches.Cancel))},
		{http.MethodPost, "/api/batches/:batchId/retry", access.Operate, noQuery(noBody(f.api.batches.Retry))},
		{http.MethodPost, "/api/flows", access.Submit, noQuery(f.api.batches.CreateFlow)},
		{http.MethodGet, "/api/flows", access.Read, f.api.batches.ListFlows},
		{http.MethodGet, "/api/flows/:flowId", access.Read, f.api.batches.GetFlow},
		{http.MethodPost, "/api/flows/:flowId/cancel", access.Operate, noQuery(noBody(noMatch(f.api.batches.CancelFlow)))},
		{http.MethodPost, "/api/flows/:flowId/retry", access.Operate, noQuery(noMatch(f.api.batches.RetryFlow))},
	}
}

func (f *Function) alertRoutes() []route {
	return []route{
		{http.MethodPost, "/api/alerts", access.Operate, noQuery(f.api.alerts.Create)},
		{http.MethodGet, "/api/alerts", access.Read, f.api.alerts.List},
		{http.MethodGet, "/api/alerts/:name", access.Read, f.api.alerts.Get},
		{http.MethodPut, "/api/alerts/:name", access.Operate, f.api.alerts.Put},
		{http.MethodDelete, "/api/alerts/:name", access.Operate, noBody(f.api.alerts.Delete)},
		{http.MethodPost, "/api/alerts/:name/pause", access.Operate, noBody(f.api.alerts.Pause)},
		{http.MethodPost, "/api/alerts/:name/resume", access.Operate, noBody(f.api.alerts.Resume)},
		{http.MethodPost, "/api/alerts/:name/test", access.Operate, noBody(f.api.alerts.Test)},
		{http.MethodGet, "/api/alerts/:name/notices", access.Read, f.api.alerts.ListNotices},
	}
}

// Handler serves all routes.
func (f *Function) Handler() http.Handler {
	engine := gin.New()
	engine.HandleMethodNotAllowed = true
	engine.RedirectTrailingSlash = false // an unknown path is a 404 with the body of this API
	// A name in a path may have any character, even a slash. gin itself would decode a + as a space.
	engine.UseEscapedPath, engine.UnescapePathValues = true, false
	engine.RemoteIPHeaders = []string{"X-Forwarded-For"}
	_ = engine.SetTrustedProxies(f.cfg.Limits.TrustedProxies) // New has checked them
	engine.Use(edge.Below(f.base), f.measured(), f.tracing, edge.Recover, f.refuseForeignPages, f.checkTrace)
	for _, r := range f.routes() {
		handle := f.answering(f.authenticated(r.needs, r.handle))
		engine.Handle(r.method, r.path, handle)
		if r.method == http.MethodGet {
			engine.Handle(http.MethodHead, r.path, handle) // net/http leaves out the body
		}
	}
	engine.NoRoute(f.answering(f.elsewhere))
	f.refuseMethods(engine)
	if !f.cfg.Aliases {
		return engine
	}
	return aliases.Handler(engine, func(r *http.Request) bool { return f.page.At(r) != nil })
}

// elsewhere answers at an address without an endpoint: with a file or page of the dashboard, or with a 404.
func (f *Function) elsewhere(c *gin.Context) error {
	at := c.Request.URL.Path
	if plain := path.Clean(at); plain != at {
		return apierror.New(apierror.NotFound, "there is nothing at %s; did you mean %s?", at, plain)
	}
	if show := f.page.At(c.Request); show != nil {
		c.Set(dashboardKey, true)
		if !f.page.Immutable(c.Request.URL.Path) { // a page loads a dozen of these at once, and each client only once
			show = f.limited(show)
		}
		return show(c)
	}
	return apierror.New(apierror.NotFound, "there is nothing at %s", at)
}

// refuseMethods answers 405 with the methods that a path does take. gin counts those of every pattern that matches a
// path, and prefers a pattern with the method to the path itself: DELETE /api/jobs/dead would be handled by
// /api/jobs/:jobId.
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
	patterns := http.NewServeMux() // finds the pattern of a path for any method
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
	engine.NoMethod(refuse) // for a method that no path takes
}

// muxPath converts a path from gin's notation to that of net/http, ginPath converts it back.
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

// answering turns the error of a handler into a response.
func (f *Function) answering(handle func(*gin.Context) error) gin.HandlerFunc {
	return func(c *gin.Context) {
		for i, param := range c.Params {
			if plain, err := url.PathUnescape(param.Value); err == nil { // net/http has refused invalid escapes
				c.Params[i].Value = plain
			}
		}
		if err := f.limits.Carry(c, handle); err != nil {
			f.fail(c, err)
		}
	}
}
