package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"

	"github.com/jobweaver/jobweaver/functions/runjob/handlers"
)

// primesConfig has the settings of PRIMES.
type primesConfig struct {
	Most int `envconfig:"PRIMES_MOST" default:"10000000" desc:"the largest number that PRIMES accepts"`
}

// primesSchema describes the payload to the gateway and to forms. The gateway and the worker refuse payloads that do
// not match.
var primesSchema = json.RawMessage(`{
  "$schema": "https://json-schema.org/draft/2020-12/schema",
  "title": "PRIMES",
  "description": "Counts the primes below a number",
  "type": "object",
  "additionalProperties": false,
  "required": ["below"],
  "properties": {"below": {"type": "integer", "minimum": 0, "title": "Below", "description": "Count up to here"}}
}`)

// primes counts the primes below a number. It stops when its context ends, writes log lines, and reports its progress.
// It has no side effects in outside systems; those would carry a.Token, which no other attempt has.
func (c primesConfig) primes(ctx context.Context, a *handlers.Attempt) (handlers.Result, error) {
	var payload struct{ Below int }
	if err := json.Unmarshal(a.Payload, &payload); err != nil {
		return handlers.Result{}, &handlers.Failure{Code: "PRIMES.BAD_PAYLOAD", Message: err.Error()}
	}
	if payload.Below > c.Most {
		// Not retryable: the next attempt would fail in the same way.
		return handlers.Result{}, &handlers.Failure{
			Code: "PRIMES.TOO_LARGE", Message: fmt.Sprintf("below may be at most %d", c.Most),
		}
	}
	composite := make([]bool, max(payload.Below, 2))
	count := 0
	for n := 2; n < payload.Below; n++ {
		if n%1000 == 0 {
			if ctx.Err() != nil {
				return handlers.Result{}, context.Cause(ctx)
			}
			a.Progress(100*n/payload.Below, fmt.Sprintf("at %d", n))
		}
		if composite[n] {
			continue
		}
		count++
		for m := n * n; m < payload.Below; m += n {
			composite[m] = true
		}
	}
	a.Log(slog.LevelInfo, fmt.Sprintf("there are %d primes below %d", count, payload.Below))
	return handlers.Result{Output: json.RawMessage(fmt.Sprintf(`{"primes": %d}`, count))}, nil
}
