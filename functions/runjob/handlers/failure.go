package handlers

import (
	"errors"
	"strings"
	"time"

	"github.com/jobweaver/jobweaver/shared/apierror"
)

// Failure is an error that says how the attempt failed.
type Failure struct {
	Code       string // namespaced, as in DEMO.NO_SUCH_FILE
	Message    string
	Retryable  bool
	RetryAfter time.Duration // 0: the job's policy decides
	Private    bool          // the message has what others said: it stands with the job, not in the worker's own log
}

// Error is the code and the message.
func (f *Failure) Error() string { return f.Code + ": " + f.Message }

// invalidPayload says all that is wrong; trying again would not help.
func invalidPayload(err error) *Failure {
	message := err.Error()
	var refused *apierror.Error
	if errors.As(err, &refused) && len(refused.Details) > 0 {
		parts := make([]string, len(refused.Details))
		for i, detail := range refused.Details {
			parts[i] = detail.Path + " " + detail.Message
		}
		message = strings.Join(parts, "; ")
	}
	return &Failure{Code: string(apierror.InvalidPayload), Message: message}
}

// notConfigured is the failure of a job type that its operator has not set up; the jobs of others go on.
func notConfigured(setting string) *Failure {
	return &Failure{Code: string(apierror.NotConfigured), Message: setting + " is not set for this worker"}
}
