package client

import (
	"context"
	"encoding/json"
	"time"
)

// WorkStep is what a step of an attempt returned.
type WorkStep struct {
	Name   string          // by which it is known in all attempts of the job
	Result json.RawMessage // at most 256 KiB; nil: null
	Until  time.Time       // of a sleep: when it is over; zero: it is no sleep
	Took   time.Duration   // how long the step ran; 0: unknown
}

// Step is a stored step of a job.
type Step struct {
	Name    string          `json:"name"`
	Attempt int             `json:"attempt"` // that saved it
	SavedAt time.Time       `json:"savedAt"`
	Until   time.Time       `json:"until"`  // of a sleep: when it is over; zero: it is no sleep
	TookMs  int64           `json:"tookMs"` // how long the step ran; 0: unknown
	Result  json.RawMessage `json:"result"` // with the job: null if the results are too large together, or sealed
	Bytes   int             `json:"bytes"`  // of the result; 0 in an attempt
}

// StepPage has steps of a job in the order of their names.
type StepPage struct {
	Steps []Step `json:"steps"`
	Next  string `json:"next"` // to ask for the next page; empty: there is none
}

// SaveStep keeps what a step of an attempt returned, for the later attempts of the job. It returns the step as it is
// stored: if an earlier attempt has saved one of this name, that one. It may be repeated.
func (c *Client) SaveStep(ctx context.Context, worker, token string, step WorkStep) (stored Step, err error) {
	took := step.Took.Milliseconds()
	if step.Took > 0 {
		took = max(took, 1)
	}
	body := struct {
		Worker string          `json:"worker"`
		Token  string          `json:"token"`
		Name   string          `json:"name"`
		Result json.RawMessage `json:"result,omitempty"`
		Until  time.Time       `json:"until,omitzero"`
		TookMs int64           `json:"tookMs,omitempty"`
	}{worker, token, step.Name, step.Result, step.Until, took}
	err = c.work(ctx, request{path: "/api/workers/steps", repeatable: true}, body, &stored)
	return stored, err
}

// Steps returns a page of the steps that the attempts of a job have saved: those after a name, or the first ones.
func (c *Client) Steps(ctx context.Context, worker, token, after string) (page StepPage, err error) {
	err = c.work(ctx, request{path: "/api/workers/steps/read", repeatable: true}, struct {
		Worker string `json:"worker"`
		Token  string `json:"token"`
		After  string `json:"after,omitempty"`
	}{worker, token, after}, &page)
	return page, err
}
