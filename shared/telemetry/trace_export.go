package telemetry

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"strconv"
	"sync/atomic"
	"time"

	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"github.com/jobweaver/jobweaver/shared/tlsfiles"
)

// otlp sends spans to a collector: it is an otlptrace.Client. OpenTelemetry's own client for HTTP links gRPC, which
// would make each binary 5.5 MB larger.
type otlp struct {
	url     string
	headers map[string]string
	zip     bool
	timeout time.Duration
	client  *http.Client
	logger  *slog.Logger
	wait    time.Duration // between the first two tries
	broken  atomic.Bool   // the last batch was lost
	stop    chan struct{} // closed: drop the current batch
	stopped chan struct{} // closed: no further batch comes
}

const (
	firstWait = time.Second // between two tries; doubled each time
	maxAnswer = 64 << 10
)

func newOTLP(cfg TraceConfig, logger *slog.Logger) (*otlp, error) {
	target, err := cfg.Target()
	if err != nil {
		return nil, err
	}
	o := &otlp{
		url: target.String(), wait: firstWait, logger: logger, stop: make(chan struct{}), stopped: make(chan struct{}),
	}
	if o.headers, err = cfg.headers(); err != nil {
		return nil, err
	}
	if o.timeout, err = cfg.timeout(); err != nil {
		return nil, err
	}
	if o.zip, err = cfg.gzip(); err != nil {
		return nil, err
	}
	trust, err := tlsfiles.NewClient(
		tlsfiles.File{Setting: "OTEL_EXPORTER_OTLP_CERTIFICATE", Path: cfg.CertificateFile},
		tlsfiles.File{Setting: "OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE", Path: cfg.ClientCertFile},
		tlsfiles.File{Setting: "OTEL_EXPORTER_OTLP_CLIENT_KEY", Path: cfg.ClientKeyFile})
	if err != nil {
		return nil, err
	}
	o.client = &http.Client{
		Transport:     trust.Transport(func(t *http.Transport) { t.MaxIdleConnsPerHost = 1 }),
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	return o, nil
}

// Start is otlptrace.Client's.
func (o *otlp) Start(context.Context) error { return nil }

// Stop is otlptrace.Client's. It is called when the last batch has been sent, or dropped.
func (o *otlp) Stop(context.Context) error {
	o.client.CloseIdleConnections()
	close(o.stopped)
	return nil
}

// UploadTraces is otlptrace.Client's. A batch that cannot be sent in time is lost. Only the first lost batch of an
// outage is logged, here.
func (o *otlp) UploadTraces(ctx context.Context, spans []*tracepb.ResourceSpans) error {
	ctx, cancel := context.WithTimeout(ctx, o.timeout)
	defer cancel()
	done := make(chan struct{})
	defer close(done)
	go func() {
		select {
		case <-o.stop:
			cancel()
		case <-done:
		}
	}()
	err := o.upload(ctx, spans)
	switch was := o.broken.Swap(err != nil); {
	case err != nil && !was:
		o.logger.WarnContext(ctx, "spans do not reach the collector and are dropped", "error", err)
	case err == nil && was:
		o.logger.InfoContext(ctx, "spans reach the collector again")
	}
	return nil
}

func (o *otlp) upload(ctx context.Context, spans []*tracepb.ResourceSpans) error {
	// The one field of a collector's ExportTraceServiceRequest has the same number and type.
	body, err := proto.Marshal(&tracepb.TracesData{ResourceSpans: spans})
	if err != nil {
		return fmt.Errorf("encode spans: %w", err)
	}
	if o.zip {
		if body, err = zipped(body); err != nil {
			return err
		}
	}
	for wait := o.wait; ; wait *= 2 {
		after, err := o.post(ctx, body)
		if err == nil || after < 0 {
			return err
		}
		timer := time.NewTimer(max(wait, after))
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return err
		}
	}
}

func zipped(body []byte) ([]byte, error) {
	var buffer bytes.Buffer
	w := gzip.NewWriter(&buffer)
	if _, err := w.Write(body); err != nil {
		return nil, fmt.Errorf("compress spans: %w", err)
	}
	if err := w.Close(); err != nil {
		return nil, fmt.Errorf("compress spans: %w", err)
	}
	return buffer.Bytes(), nil
}

// never is the wait after an error that no retry can help.
const never time.Duration = -1

// post tries once. after is the shortest time that the collector asks us to wait, or never.
func (o *otlp) post(ctx context.Context, body []byte) (after time.Duration, err error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, o.url, bytes.NewReader(body))
	if err != nil {
		return never, fmt.Errorf("make request: %w", err)
	}
	for name, value := range o.headers {
		r.Header.Set(name, value)
	}
	r.Header.Set("Content-Type", "application/x-protobuf")
	r.Header.Set("User-Agent", "jobweaver")
	if o.zip {
		r.Header.Set("Content-Encoding", "gzip")
	}
	answer, err := o.client.Do(r)
	if err != nil {
		return 0, withoutURL(err)
	}
	_, _ = io.Copy(io.Discard, io.LimitReader(answer.Body, maxAnswer)) // to keep the connection
	_ = answer.Body.Close()
	switch answer.StatusCode {
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		seconds, _ := strconv.Atoi(answer.Header.Get("Retry-After"))
		return time.Duration(seconds) * time.Second, fmt.Errorf("the collector answered %d", answer.StatusCode)
	}
	if answer.StatusCode/100 != 2 {
		return never, fmt.Errorf("the collector answered %d", answer.StatusCode)
	}
	return 0, nil
}

// withoutURL removes the URL from an error, since it may have a secret.
func withoutURL(err error) error {
	if wrapped := (*url.Error)(nil); errors.As(err, &wrapped) {
		return wrapped.Err
	}
	return err
}
