package client

import (
	"context"
	"encoding"
	"encoding/json"
	"net/http"
	"net/url"
	"reflect"
	"time"

	"github.com/google/jsonschema-go/jsonschema"
)

// TaskQueue is the queue of a task that names none: that of pull workers.
const TaskQueue = "pull"

// Task is a job type that is defined in code: what its jobs take and return, and how they run. A worker runs it with
// worker.HandleTask. In and Out are what encoding/json makes of payload and output. The gateway gets their schemas:
// a field of In without omitempty or omitzero is required, and the tag jsonschema describes it.
type Task[In, Out any] struct {
	Type        string
	Title       string // what the task does, in a few words, for people
	Description string

	// Schedules are jobs at times. A worker that starts creates and changes them, and deletes those that it made and that
	// are not here any more.
	Schedules []TaskSchedule[In]

	// Defaults has what the jobs of the task have besides type and payload. What it leaves out, the installation decides;
	// the queue is TaskQueue.
	Defaults JobRequest
}

// TaskSchedule is a schedule beside the handler of a task.
type TaskSchedule[In any] struct {
	Name     string // different for each schedule of the owner
	Cron     string // five fields, six with seconds, or such as @every 90s
	TimeZone string // such as Europe/Berlin; empty: UTC
	Payload  In
	Overlap  string // allow, skip or cancel; empty: allow
	Missed   string // skip, one or all; empty: one
	StartAt  time.Time
	EndAt    time.Time
}

// DefinedSchedule is a schedule as a worker sends it.
type DefinedSchedule struct {
	Name     string     `json:"name"`
	Cron     string     `json:"cron"`
	TimeZone string     `json:"timeZone,omitempty"`
	Job      JobRequest `json:"job"`
	Overlap  string     `json:"overlap,omitempty"`
	Missed   string     `json:"missed,omitempty"`
	StartAt  time.Time  `json:"startAt,omitzero"`
	EndAt    time.Time  `json:"endAt,omitzero"`
}

// Request returns the request for a job, as batches and schedules take it. Each function changes it.
func (t *Task[In, Out]) Request(in In, with ...func(*JobRequest)) JobRequest {
	request := t.Defaults
	request.JobType, request.Payload = t.Type, in
	if request.Queue == "" {
		request.Queue = TaskQueue
	}
	for _, change := range with {
		change(&request)
	}
	return request
}

// Submit submits a job. Without an IdempotencyKey it gets one, so that a repeated request makes no second job.
func (t *Task[In, Out]) Submit(ctx context.Context, c *Client, in In, with ...func(*JobRequest)) (Accepted, error) {
	return c.Submit(ctx, t.Request(in, with...))
}

// SubmitAll submits a job for each payload, 1,000 in a request, and returns a result for each, in their order.
func (t *Task[In, Out]) SubmitAll(
	ctx context.Context, c *Client, all []In, with ...func(*JobRequest),
) ([]BatchResult, error) {
	requests := make([]JobRequest, len(all))
	for i, in := range all {
		requests[i] = t.Request(in, with...)
	}
	return c.SubmitBatch(ctx, requests)
}

// Run submits a job and returns its output once it is COMPLETED. If it ends otherwise, the error is an *EndedError.
func (t *Task[In, Out]) Run(ctx context.Context, c *Client, in In, with ...func(*JobRequest)) (out Out, err error) {
	job, err := c.Run(ctx, t.Request(in, with...))
	if err != nil {
		return out, err
	}
	return t.Output(job)
}

// Wait waits for a job of the task and returns its output. If it ends otherwise than COMPLETED, the error is an
// *EndedError.
func (t *Task[In, Out]) Wait(ctx context.Context, c *Client, id string) (out Out, err error) {
	job, err := c.Wait(ctx, id)
	if err != nil {
		return out, err
	}
	return t.Output(job)
}

// Output returns the output of an ended job of the task, or an *EndedError.
func (t *Task[In, Out]) Output(job *Job) (out Out, err error) {
	err = job.DecodeOutput(&out)
	return out, err
}

// Definition returns what a worker sends to the gateway when it starts. A type that has no JSON Schema, such as one
// that contains itself, is sent without.
func (t *Task[In, Out]) Definition() JobTypeDefinition {
	definition := JobTypeDefinition{
		Title: t.Title, Description: t.Description, Schema: schemaOf[In](), OutputSchema: schemaOf[Out](),
		Schedules: []DefinedSchedule{},
	}
	for _, s := range t.Schedules {
		definition.Schedules = append(definition.Schedules, DefinedSchedule{
			Name: s.Name, Cron: s.Cron, TimeZone: s.TimeZone, Overlap: s.Overlap, Missed: s.Missed, StartAt: s.StartAt,
			EndAt: s.EndAt, Job: t.Request(s.Payload, func(r *JobRequest) { r.Debounce = nil }),
		})
	}
	return definition
}

// JobTypeDefinition describes a job type that a worker runs.
type JobTypeDefinition struct {
	Title        string          `json:"title,omitempty"`
	Description  string          `json:"description,omitempty"`
	Schema       json.RawMessage `json:"schema,omitempty"`       // JSON Schema of the payload; nil: any
	OutputSchema json.RawMessage `json:"outputSchema,omitempty"` // JSON Schema of the output; nil: any

	Schedules []DefinedSchedule `json:"-"` // all that the type has in code
}

// DescribeJobType makes the gateway accept jobs of a type, and refuse those whose payload does not match the schema. It
// makes the schedules that the type has in code those of the definition.
func (c *Client) DescribeJobType(ctx context.Context, jobType string, definition JobTypeDefinition) error {
	r := request{method: http.MethodPut, path: "/api/job-types/" + url.PathEscape(jobType), repeatable: true}
	if _, err := c.json(ctx, r, definition, nil); err != nil {
		return err
	}
	r.path += "/schedules"
	_, err := c.json(ctx, r, map[string]any{"schedules": definition.Schedules}, nil)
	return err
}

func schemaOf[T any]() json.RawMessage {
	known := map[reflect.Type]*jsonschema.Schema{}
	collect(reflect.TypeFor[T](), known, map[reflect.Type]bool{})
	schema, err := jsonschema.For[T](&jsonschema.ForOptions{TypeSchemas: known})
	if err != nil {
		return nil
	}
	loosen(schema)
	text, err := json.Marshal(schema)
	if err != nil || string(text) == "true" { // anything
		return nil
	}
	return text
}

// collect adds the types that encoding/json does not read by their kind.
func collect(t reflect.Type, known map[reflect.Type]*jsonschema.Schema, seen map[reflect.Type]bool) {
	if seen[t] {
		return
	}
	seen[t] = true
	to := reflect.PointerTo(t)
	switch {
	case to.Implements(reflect.TypeFor[json.Unmarshaler]()):
		known[t] = &jsonschema.Schema{} // anything
	case to.Implements(reflect.TypeFor[encoding.TextUnmarshaler]()):
		known[t] = &jsonschema.Schema{Type: "string"}
	case t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.Uint8:
		known[t] = &jsonschema.Schema{Types: []string{"null", "string"}} // in base64
	case t.Kind() == reflect.Struct:
		for _, field := range reflect.VisibleFields(t) {
			collect(field.Type, known, seen)
		}
	case t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice || t.Kind() == reflect.Array || t.Kind() == reflect.Map:
		collect(t.Elem(), known, seen)
	}
}

// loosen allows members that a struct lacks, as encoding/json does.
func loosen(s *jsonschema.Schema) {
	if s == nil {
		return
	}
	if s.AdditionalProperties != nil && s.AdditionalProperties.Not != nil { // of a struct
		s.AdditionalProperties = nil
	}
	for _, property := range s.Properties {
		loosen(property)
	}
	loosen(s.Items)
	loosen(s.AdditionalProperties)
}
