package gateway

import (
	"context"
	"net/http"
	"time"

	"github.com/gin-gonic/gin"

	"github.com/jobweaver/jobweaver/shared/apierror"
)

// requestPatience bounds the work on one request; an answer that is held with ?wait= counts its own.
const requestPatience = 15 * time.Second

type route struct {
	method, path string
	handle       func(*gin.Context) error
}

// routes is every endpoint, each of which stands in openapi.yaml.
func (g *Gateway) routes() []route {
	return []route{
		{http.MethodPost, "/api/jobs", g.submit},
		{http.MethodPost, "/api/jobs/batch", g.submitBatch},
		{http.MethodGet, "/api/jobs", g.list},
		{http.MethodGet, "/api/jobs/:jobId", g.get},
		{http.MethodGet, "/api/jobs/:jobId/logs", g.logs},
		{http.MethodPost, "/api/jobs/:jobId/cancel", g.cancel},
		{http.MethodPost, "/api/jobs/:jobId/retry", g.retry},
		{http.MethodPost, "/events", g.takeEvents},
		{http.MethodGet, "/api/health", g.health},
		{http.MethodGet, "/api/openapi.yaml", g.contract},
		{http.MethodGet, "/", g.page},
	}
}

// Handler serves all routes.
func (g *Gateway) Handler() http.Handler {
	gin.SetMode(gin.ReleaseMode)
	engine := gin.New()
	engine.HandleMethodNotAllowed = true
	engine.RedirectTrailingSlash = false // an unknown path is 404, with our body
	engine.Use(trace, g.recover)
	for _, r := range g.routes() {
		engine.Handle(r.method, r.path, g.answering(r.handle))
	}
	engine.NoRoute(g.answering(func(c *gin.Context) error {
		return apierror.New(apierror.NotFound, "there is nothing at %s", c.Request.URL.Path)
	}))
	engine.NoMethod(g.answering(func(c *gin.Context) error {
		return apierror.New(apierror.MethodNotAllowed, "%s does not take %s", c.Request.URL.Path, c.Request.Method)
	}))
	return engine
}

// answering turns a handler's error into the answer.
func (g *Gateway) answering(handle func(*gin.Context) error) gin.HandlerFunc {
	return func(c *gin.Context) {
		if err := handle(c); err != nil {
			g.fail(c, err)
		}
	}
}

// patience is the request's context with a limit.
func patience(c *gin.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(c.Request.Context(), requestPatience)
}
