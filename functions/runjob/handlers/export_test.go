package handlers

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"time"

	"github.com/jobweaver/jobweaver/shared/outbound"
)

// ReadAnswer returns the result of an answer.
func ReadAnswer(status int, header http.Header, body []byte) (json.RawMessage, *Failure) {
	answer := &outbound.Answer{Status: status, Header: header, Body: body}
	if status/100 != 2 {
		return nil, callRefused(httptest.NewRequest(http.MethodPost, "http://example.org/", nil), answer)
	}
	return outputOf(answer)
}

// ReadCall reads the common fields of a payload of EXTERNAL or FUNCTION.
func ReadCall(payload []byte) (url string, headers map[string]string, wait time.Duration, wrong *Failure) {
	p, wrong := readCall(payload)
	return p.URL, p.Headers, p.wait(), wrong
}
