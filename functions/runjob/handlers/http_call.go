package handlers

import (
	"context"
	"fmt"
	"net/http"

	"github.com/jobweaver/jobweaver/shared/apierror"
	"github.com/jobweaver/jobweaver/shared/jobspec"
	"github.com/jobweaver/jobweaver/shared/outbound"
)

// maxAnswer is how many bytes of an answer are read. They are not used.
const maxAnswer = 64 << 10

// httpCall makes the call of a step. It fails if the status is 400 or above, or without an answer. The attempt's
// context bounds it. A service that is too busy may set the delay before the retry.
func (s *Simulation) httpCall(ctx context.Context, step jobspec.HTTPCall) error {
	request, err := http.NewRequestWithContext(ctx, step.Method, step.URL, http.NoBody)
	if err != nil {
		return callFailed(step, err.Error(), false)
	}
	request.Header.Set("User-Agent", "jobweaver-worker")
	answer, err := s.calls.Do(request, maxAnswer)
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case err != nil:
		return callFailed(step, err.Error(), !outbound.IsFinal(err))
	case answer.Status < http.StatusBadRequest:
		return nil
	}
	why := fmt.Sprintf("answered %d %s", answer.Status, http.StatusText(answer.Status))
	failure := callFailed(step, why, mayGetBetter(answer.Status))
	failure.RetryAfter = answer.RetryAfter
	return failure
}

// mayGetBetter reports whether a call with this status, 400 or above, is worth a retry: the statuses that Knative
// retries.
func mayGetBetter(status int) bool {
	switch status {
	case http.StatusNotFound, http.StatusRequestTimeout, http.StatusConflict, http.StatusTooManyRequests:
		return true
	}
	return status >= http.StatusInternalServerError
}

func callFailed(step jobspec.HTTPCall, why string, retryable bool) *Failure {
	return &Failure{
		Code:      string(apierror.SimulationFailed),
		Message:   fmt.Sprintf("HTTP_CALL %s %s: %s", step.Method, step.URL, why),
		Retryable: retryable,
		Private:   true, // a URL may have secrets in its query
	}
}
