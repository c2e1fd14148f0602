package handlers

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	"code.dny.dev/ssrf"

	"github.com/jobweaver/jobweaver/shared/apierror"
	"github.com/jobweaver/jobweaver/shared/jobspec"
)

// maxAnswer bounds what is read of an answer; nobody looks at it.
const maxAnswer = 1 << 20

// httpCaller makes the calls of HTTP_CALL steps.
type httpCaller struct {
	client *http.Client
}

func newHTTPCaller(allowPrivate bool) *httpCaller {
	dialer := &net.Dialer{Timeout: 30 * time.Second}
	if !allowPrivate {
		// Looks at the address that is connected to, so a name cannot be one thing when checked and
		// another when called.
		dialer.Control = ssrf.New(ssrf.WithAnyPort()).Safe
	}
	return &httpCaller{client: &http.Client{
		Transport: &http.Transport{
			Proxy:                  nil, // a proxy would connect for us, past the check
			DialContext:            dialer.DialContext,
			DisableKeepAlives:      true,
			TLSHandshakeTimeout:    10 * time.Second,
			MaxResponseHeaderBytes: 64 << 10,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// call fails when the answer is 400 or above, or does not come. The attempt's context bounds it. Who
// answers that it is too busy may say for how long.
func (c *httpCaller) call(ctx context.Context, step jobspec.HTTPCall) error {
	request, err := http.NewRequestWithContext(ctx, step.Method, step.URL, http.NoBody)
	if err != nil {
		return callFailed(step, err.Error(), false)
	}
	request.Header.Set("User-Agent", "jobweaver-worker")
	answer, err := c.client.Do(request)
	if err != nil {
		return callError(ctx, step, err)
	}
	defer func() { _ = answer.Body.Close() }()
	if answer.StatusCode >= http.StatusBadRequest {
		failure := callFailed(step, "answered "+answer.Status, mayGetBetter(answer.StatusCode))
		failure.RetryAfter = retryAfter(answer, time.Now())
		return failure
	}
	if _, err := io.Copy(io.Discard, io.LimitReader(answer.Body, maxAnswer)); err != nil {
		return callError(ctx, step, err)
	}
	return nil
}

func callError(ctx context.Context, step jobspec.HTTPCall, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	refused := errors.Is(err, ssrf.ErrProhibitedIP) || errors.Is(err, ssrf.ErrProhibitedNetwork)
	return callFailed(step, err.Error(), !refused)
}

func callFailed(step jobspec.HTTPCall, why string, retryable bool) *Failure {
	return &Failure{
		Code:      string(apierror.SimulationFailed),
		Message:   fmt.Sprintf("HTTP_CALL %s %s: %s", step.Method, step.URL, why),
		Retryable: retryable,
	}
}
