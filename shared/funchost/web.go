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

// web is the function's HTTP server and, with METRICS_PORT, that of its metrics; without a listener it does not serve.
type web struct{ servers []served }

type served struct {
	listener net.Listener
	server   *http.Server
}

// listen opens the function's addresses. Requests end with ctx.
func (h *host) listen(ctx context.Context) (_ *web, err error) {
	w := &web{}
	if h.cfg.NoListen {
		return w, nil
	}
	defer func() {
		if err != nil {
			w.close()
		}
	}()
	counted := h.inFlight.Count(h.routes(), h.stopping.Load, probe.LivenessPath, probe.ReadinessPath, metricsPath)
	if err = h.open(ctx, w, "PORT", h.cfg.Listener, h.cfg.Port, counted); err != nil {
		return w, err
	}
	if err = h.cfg.checkTransport(ctx, h.servesHTTP(), w.servers[0].listener.Addr()); err != nil {
		return w, err
	}
	if h.ownMetrics() {
		mux := http.NewServeMux()
		mux.Handle("GET "+metricsPath, telemetry.MetricsHandler())
		err = h.open(ctx, w, "METRICS_PORT", h.cfg.MetricsListener, h.cfg.MetricsPort, mux)
	}
	return w, err
}

// ownMetrics reports whether /metrics has a port of its own.
func (h *host) ownMetrics() bool { return h.cfg.MetricsPort != 0 || h.cfg.MetricsListener != nil }

// open adds a server to w. The settings of TLS and ALLOWED_HOSTS hold for both ports.
func (h *host) open(
	ctx context.Context, w *web, setting string, listener net.Listener, port int, handler http.Handler,
) error {
	if listener == nil {
		var err error
		listener, err = net.Listen("tcp", net.JoinHostPort(h.cfg.Host, strconv.Itoa(port)))
		if err != nil {
			return fmt.Errorf("HOST and %s: %w", setting, err)
		}
	}
	server := h.cfg.timeouts.Server()
	w.servers = append(w.servers, served{listener, server})
	if h.f.LoopbackFor != "" && !onLoopback(listener.Addr()) {
		return fmt.Errorf("%s is for a loopback address, as HOST=127.0.0.1, and HTTP would listen on %s",
			h.f.LoopbackFor, listener.Addr())
	}
	secure, err := h.cfg.TLS.Server()
	hosts, wrong := httpserver.NewAllowedHosts(h.cfg.AllowedHosts)
	if err := errors.Join(err, wrong); err != nil {
		return err
	}
	server.Handler = httpserver.Protect(hosts.Guard(h.cfg.TLS.guard(handler)))
	server.TLSConfig = secure
	server.BaseContext = func(net.Listener) context.Context { return ctx }
	server.ErrorLog = slog.NewLogLogger(telemetry.Logger(ctx).Handler(), slog.LevelWarn)
	return nil
}

// close closes the listeners of servers that do not serve.
func (w *web) close() {
	for _, s := range w.servers {
		_ = s.listener.Close()
	}
}

// onLoopback reports whether an address is reachable from this machine only.
func onLoopback(address net.Addr) bool {
	at, err := netip.ParseAddrPort(address.String())
	return err == nil && at.Addr().Unmap().IsLoopback()
}

func (w *web) address() string {
	if len(w.servers) == 0 {
		return ""
	}
	return w.servers[0].listener.Addr().String()
}

// serve serves until shutdown.
func (s served) serve() error {
	serve := s.server.Serve
	if s.server.TLSConfig != nil {
		serve = func(l net.Listener) error { return s.server.ServeTLS(l, "", "") }
	}
	if err := serve(s.listener); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve HTTP: %w", err)
	}
	return nil
}

// shutdown waits for requests under way until ctx ends.
func (w *web) shutdown(ctx context.Context) {
	for _, s := range w.servers {
		if s.server.Shutdown(ctx) != nil {
			_ = s.server.Close() // ctx has ended, and with it the requests' contexts
		}
	}
}

// servesHTTP reports whether the function serves more than probes.
func (h *host) servesHTTP() bool {
	return !h.cfg.NoListen && (h.f.HTTP != nil || h.cfg.FuncTransport == TransportHTTP)
}

func (h *host) handleProbes(mux *http.ServeMux) {
	if h.cfg.beside != nil {
		mux.HandleFunc("GET "+probe.LivenessPath, h.cfg.beside.liveness)
		mux.HandleFunc("GET "+probe.ReadinessPath, h.cfg.beside.readiness)
		return
	}
	mux.HandleFunc("GET "+probe.LivenessPath, func(w http.ResponseWriter, r *http.Request) {
		probe.Answer(w, h.noteAlive(r.Context()))
	})
	mux.HandleFunc("GET "+probe.ReadinessPath, func(w http.ResponseWriter, _ *http.Request) {
		probe.Answer(w, h.ready(time.Now()))
	})
}

// noteAlive is alive, and logs its error: a kubelet does not show the answer for which it kills the process.
func (h *host) noteAlive(ctx context.Context) error {
	err := h.alive(time.Now())
	h.stuck.Note(ctx, err)
	return err
}

func (h *host) routes() http.Handler {
	mux, own := http.NewServeMux(), []string{probe.LivenessPath, probe.ReadinessPath}
	h.handleProbes(mux)
	if !h.f.HTTPMetrics && !h.ownMetrics() {
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
