package funchost

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strconv"
	"time"

	"github.com/jobweaver/jobweaver/shared/funchost/httpserver"
	"github.com/jobweaver/jobweaver/shared/funchost/probe"
	"github.com/jobweaver/jobweaver/shared/telemetry"
)

const metricsPath = "/metrics"

// web is the function's HTTP server; without a listener it does not serve.
type web struct {
	listener net.Listener
	server   *http.Server
}

// listen opens the function's address. Requests end with ctx.
func (h *host) listen(ctx context.Context) (*web, error) {
	if h.cfg.NoListen {
		return &web{}, nil
	}
	listener := h.cfg.Listener
	if listener == nil {
		address := net.JoinHostPort(h.cfg.Host, strconv.Itoa(h.cfg.Port))
		var err error
		if listener, err = net.Listen("tcp", address); err != nil {
			return nil, fmt.Errorf("HOST and PORT: %w", err)
		}
	}
	if h.f.LoopbackFor != "" && !onLoopback(listener.Addr()) {
		_ = listener.Close()
		return nil, fmt.Errorf("%s is for a loopback address, as HOST=127.0.0.1, and HTTP would listen on %s",
			h.f.LoopbackFor, listener.Addr())
	}
	secure, err := h.cfg.TLS.server()
	hosts, wrong := httpserver.NewAllowedHosts(h.cfg.AllowedHosts)
	err = errors.Join(err, wrong)
	if err == nil {
		err = h.cfg.checkTransport(ctx, h.servesHTTP(), listener.Addr())
	}
	if err != nil {
		_ = listener.Close()
		return nil, err
	}
	counted := h.inFlight.Count(h.routes(), h.stopping.Load, probe.LivenessPath, probe.ReadinessPath, metricsPath)
	server := h.cfg.timeouts.Server()
	server.Handler = httpserver.Protect(hosts.Guard(h.cfg.TLS.guard(counted)))
	server.TLSConfig = secure
	server.BaseContext = func(net.Listener) context.Context { return ctx }
	server.ErrorLog = slog.NewLogLogger(telemetry.Logger(ctx).Handler(), slog.LevelWarn)
	return &web{listener: listener, server: server}, nil
}

// onLoopback reports whether an address is reachable from this machine only.
func onLoopback(address net.Addr) bool {
	at, err := netip.ParseAddrPort(address.String())
	return err == nil && at.Addr().Unmap().IsLoopback()
}

func (w *web) address() string {
	if w.listener == nil {
		return ""
	}
	return w.listener.Addr().String()
}

// serve serves until shutdown.
func (w *web) serve() error {
	if w.server == nil {
		return nil
	}
	serve := w.server.Serve
	if w.server.TLSConfig != nil {
		serve = func(l net.Listener) error { return w.server.ServeTLS(l, "", "") }
	}
	if err := serve(w.listener); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve HTTP: %w", err)
	}
	return nil
}

// shutdown waits for requests under way until ctx ends.
func (w *web) shutdown(ctx context.Context) {
	if w.server != nil && w.server.Shutdown(ctx) != nil {
		_ = w.server.Close() // ctx has ended, and with it the requests' contexts
	}
}

// servesHTTP reports whether the function serves more than probes.
func (h *host) servesHTTP() bool {
	return !h.cfg.NoListen && (h.f.HTTP != nil || h.cfg.FuncTransport == TransportHTTP)
}

func (h *host) routes() http.Handler {
	mux, own := http.NewServeMux(), []string{probe.LivenessPath, probe.ReadinessPath}
	mux.HandleFunc("GET "+probe.LivenessPath, func(w http.ResponseWriter, r *http.Request) {
		err := h.alive(time.Now())
		h.stuck.Note(r.Context(), err) // a kubelet does not show the answer for which it kills the process
		probe.Answer(w, err)
	})
	mux.HandleFunc("GET "+probe.ReadinessPath, func(w http.ResponseWriter, _ *http.Request) {
		probe.Answer(w, h.ready(time.Now()))
	})
	if !h.f.HTTPMetrics {
		mux.Handle("GET "+metricsPath, telemetry.MetricsHandler())
		own = append(own, metricsPath)
	}
	if h.f.HTTP == nil {
		if h.cfg.FuncTransport == TransportHTTP {
			mux.HandleFunc("POST /{$}", h.meter.Requests("/", h.receive))
		}
		return mux
	}
	// The mux does not route to the function: it would redirect //api/jobs, even a POST, and answer in HTML.
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if slices.Contains(own, r.URL.Path) || r.RequestURI == "*" { // the mux refuses *
			mux.ServeHTTP(w, r)
			return
		}
		h.f.HTTP.ServeHTTP(w, r)
	})
}
