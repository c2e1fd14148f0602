// Package apierror has every error code that JobWeaver shows, with its HTTP status, in one place.
package apierror

import (
	"fmt"
	"net/http"
)

//go:generate go test -run TestErrorsPage -update

// Error is the body of an error response.
type Error struct {
	Code    Code
	Message string
	Details []Detail // the problems and their places, in the order of the request; may be empty
}

// Detail is a problem at one place of the request.
type Detail struct {
	Path    string `json:"path"` // as in payload.steps[3].durationMs; empty: the whole body
	Message string `json:"message"`
}

// New returns an error without details.
func New(code Code, format string, args ...any) *Error {
	return &Error{Code: code, Message: fmt.Sprintf(format, args...)}
}

// Invalid refuses a document because of the value at a path.
func Invalid(document, path, message string) *Error {
	return &Error{
		Code: InvalidJobRequest, Message: "invalid " + document + ": " + path + " " + message,
		Details: []Detail{{path, message}},
	}
}

// Error returns the code and the message.
func (e *Error) Error() string { return string(e.Code) + ": " + e.Message }

// Status returns the HTTP status of the code; 500 for a code that is never an HTTP answer.
func (e *Error) Status() int {
	if s := statuses[e.Code]; s != 0 {
		return s
	}
	return http.StatusInternalServerError
}
