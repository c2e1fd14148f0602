package handlers

import (
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"time"

	jsonv2 "github.com/go-json-experiment/json"

	"github.com/jobweaver/jobweaver/shared/outbound"
)

// Limits of EXTERNAL and FUNCTION, as in their schemas.
const (
	maxCallHeaders  = 32
	maxCallbackWait = 365 * 24 * time.Hour
	callbackWait    = time.Hour // if the payload does not set it
)

// callPayload has the fields of EXTERNAL and FUNCTION, and those of FUNCTION alone.
type callPayload struct {
	URL               string            `json:"url"`
	Data              json.RawMessage   `json:"data"`
	Headers           map[string]string `json:"headers"`
	CallbackTimeoutMs *float64          `json:"callbackTimeoutMs"` // a whole number in any notation
	Type              *string           `json:"type"`
}

// readCall reads a payload, and does not rely on earlier checks.
func readCall(payload []byte) (callPayload, *Failure) {
	var p callPayload
	if err := jsonv2.Unmarshal(payload, &p, jsonv2.RejectUnknownMembers(true)); err != nil {
		return p, invalidPayload(fmt.Errorf("payload: %w", err))
	}
	if err := p.check(); err != nil {
		return p, invalidPayload(err)
	}
	return p, nil
}

func (p *callPayload) check() error {
	if err := outbound.CheckURL(p.URL); err != nil {
		return fmt.Errorf("payload.url: %w", err)
	}
	const most = float64(maxCallbackWait / time.Millisecond)
	if ms := p.CallbackTimeoutMs; ms != nil && (*ms < 1 || *ms > most || *ms != math.Trunc(*ms)) {
		return fmt.Errorf("payload.callbackTimeoutMs: must be a whole number from 1 to %.0f", most)
	}
	if len(p.Headers) > maxCallHeaders {
		return fmt.Errorf("payload.headers: must be at most %d", maxCallHeaders)
	}
	seen := make(map[string]bool, len(p.Headers))
	for name, value := range p.Headers {
		canonical := http.CanonicalHeaderKey(name)
		if seen[canonical] {
			return fmt.Errorf("payload.headers: %s is there twice", canonical)
		}
		seen[canonical] = true
		if err := outbound.CheckHeader(name, value); err != nil {
			return fmt.Errorf("payload.headers[%q]: %w", excerpt([]byte(name)), err)
		}
	}
	return nil
}

func (p *callPayload) wait() time.Duration {
	if p.CallbackTimeoutMs == nil {
		return callbackWait
	}
	return time.Duration(*p.CallbackTimeoutMs) * time.Millisecond
}
