package handlers

import (
	"crypto/tls"
	"errors"
	"io"
	"net"
	"strings"
	"syscall"
	"time"

	"github.com/jobweaver/jobweaver/shared/apierror"
)

// Failure is an error that describes how the attempt failed.
type Failure struct {
	Code       string // namespaced, as in DEMO.NO_SUCH_FILE
	Message    string
	Retryable  bool
	RetryAfter time.Duration // 0: as the job's retry policy has it
	Private    bool          // the message quotes an outside system: it is not for the worker's own log
	Cause      error         // for the worker's log only: it may name hosts, users and paths of the installation
}

// Error returns the code and the message.
func (f *Failure) Error() string { return f.Code + ": " + f.Message }

// invalidPayload returns a permanent failure with all errors of the payload. It is private: a decoder's error may quote
// the payload.
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
	return &Failure{Code: string(apierror.InvalidPayload), Message: message, Private: true}
}

// notConfigured returns the failure of a job type that the operator has not configured; other types work.
func notConfigured(setting string) *Failure {
	return &Failure{Code: string(apierror.NotConfigured), Message: setting + " is not set for this worker"}
}

// reason returns, in a form for a job's owner, why a part of the installation could not be used. The error itself names
// addresses and paths.
func reason(err error) string {
	var (
		name        *net.DNSError
		late        net.Error
		certificate *tls.CertificateVerificationError
		system      syscall.Errno
	)
	switch {
	case errors.As(err, &name):
		return "its name cannot be resolved"
	case errors.As(err, &late) && late.Timeout():
		return "it did not answer in time"
	case errors.As(err, &certificate):
		return "its certificate is not trusted"
	case errors.As(err, &system):
		return system.Error()
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return "the connection was closed"
	}
	return "the worker's log has the reason"
}
