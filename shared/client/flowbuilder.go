package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"
)

// FlowBuilder makes a flow in code: each job is added with AddJob or AddEach, after those that it needs. What is wrong
// with it, Request and Submit report.
type FlowBuilder struct {
	request FlowRequest
	wrong   []error
}

// NewFlow begins a flow with the members of a request besides its jobs.
func NewFlow(about FlowRequest) *FlowBuilder {
	about.Jobs = map[string]JobRequest{}
	return &FlowBuilder{request: about}
}

// FlowStep is a job of a flow that is being made.
type FlowStep[Out any] struct {
	Name string

	flow *FlowBuilder
}

// Output stands, in the payload of another job, for the output or for a part of it. The parts are members, as in JSON,
// and indexes. Out must have them.
func (s FlowStep[Out]) Output(parts ...any) Output {
	path, err := walk(reflect.TypeFor[Out](), parts)
	if err != nil {
		s.flow.wrong = append(s.flow.wrong, fmt.Errorf("the output of %s: %w", s.Name, err))
	}
	return Output{Of: s.Name, Path: path}
}

// Failed is the condition that the job has failed or was cancelled.
func (s FlowStep[Out]) Failed() Dependency { return Dependency{Name: s.Name, On: OnFailed} }

// Ended is the condition that the job has ended in any way.
func (s FlowStep[Out]) Ended() Dependency { return Dependency{Name: s.Name, On: OnEnded} }

// Completed is the condition that the job has completed. One whose output the payload names has it anyway.
func (s FlowStep[Out]) Completed() Dependency { return Dependency{Name: s.Name, On: OnCompleted} }

// AddJob adds a job of a task. The payload is an In, an Output, or a map with the JSON members of an In, in which an
// Output stands for a value that is not known yet. The policies Unique and Debounce of the task do not apply within a
// flow.
func AddJob[In, Out any](
	f *FlowBuilder, name string, t *Task[In, Out], payload any, conditions ...Dependency,
) FlowStep[Out] {
	addJob(f, name, t, payload, nil, conditions)
	return FlowStep[Out]{Name: name, flow: f}
}

// AddEach adds a job of a task for each element of an array in an output. In the payload, Item and ItemIndex stand for
// the element and its index. The output of them together is the array of theirs, with nil for none.
func AddEach[In, Out any](
	f *FlowBuilder, name string, t *Task[In, Out], array Output, payload any, conditions ...Dependency,
) FlowStep[[]*Out] {
	addJob(f, name, t, payload, &ForEach{Output: array.Of, Path: array.Path}, conditions)
	return FlowStep[[]*Out]{Name: name, flow: f}
}

func addJob[In, Out any](
	f *FlowBuilder, name string, t *Task[In, Out], payload any, each *ForEach, conditions []Dependency,
) {
	refuse := func(format string, args ...any) {
		f.wrong = append(f.wrong, fmt.Errorf("job "+name+" "+format, args...))
	}
	if _, is := f.request.Jobs[name]; is {
		refuse("is there twice")
	}
	request := t.Request(*new(In))
	request.Payload, request.ForEach, request.Unique, request.Debounce = payload, each, nil, nil
	var needs []string
	if each != nil {
		needs = append(needs, each.Output)
	}
	switch payload := payload.(type) {
	case Output:
		needs = append(needs, payload.Of)
	case map[string]any:
		needs = append(needs, outputsIn(payload)...)
		if err := checkMembers(reflect.TypeFor[In](), payload); err != nil {
			refuse("has a payload that %w", err)
		}
	case Item, ItemIndex:
	case In:
	default:
		refuse("has a %T as its payload, not a %s or a map", payload, reflect.TypeFor[In]())
	}
	for _, condition := range conditions {
		needs = slices.DeleteFunc(needs, func(need string) bool { return need == condition.Name })
		if condition.Name != "" {
			f.mustKnow(condition.Name, refuse)
		}
	}
	slices.Sort(needs)
	for _, need := range slices.Compact(needs) {
		f.mustKnow(need, refuse)
		request.After = append(request.After, need)
	}
	request.Dependencies = append(slices.Clone(request.Dependencies), conditions...)
	f.request.Jobs[name] = request
}

func (f *FlowBuilder) mustKnow(name string, refuse func(format string, args ...any)) {
	if _, is := f.request.Jobs[name]; !is {
		refuse("comes after %s, which is not a job of this flow", name)
	}
}

// Change changes a job of the flow, for example its tags.
func (f *FlowBuilder) Change(name string, change func(*JobRequest)) {
	request := f.request.Jobs[name]
	change(&request)
	f.request.Jobs[name] = request
}

// Request returns the request, as Flows.Create takes it, and all that is wrong with the flow.
func (f *FlowBuilder) Request() (FlowRequest, error) { return f.request, errors.Join(f.wrong...) }

// Submit submits the flow. Without an IdempotencyKey it gets one, so that a repeated request makes no second flow.
func (f *FlowBuilder) Submit(ctx context.Context, c *Client) (*MadeFlow, error) {
	request, err := f.Request()
	if err != nil {
		return nil, err
	}
	return c.Flows.Create(ctx, request)
}

// outputsIn returns the names of the jobs to whose outputs a value refers.
func outputsIn(value any) (names []string) {
	switch value := value.(type) {
	case Output:
		return []string{value.Of}
	case map[string]any:
		for _, each := range value {
			names = append(names, outputsIn(each)...)
		}
	case []any:
		for _, each := range value {
			names = append(names, outputsIn(each)...)
		}
	}
	return names
}

// checkMembers compares the members of a payload with the fields of a struct.
func checkMembers(of reflect.Type, members map[string]any) error {
	fields, some := fieldsOf(of)
	if !some {
		return nil
	}
	var wrong []string
	for name := range members {
		if _, is := fields[name]; !is {
			wrong = append(wrong, "has no "+name)
		}
	}
	for name, field := range fields {
		if _, is := members[name]; field.required && !is {
			wrong = append(wrong, "needs "+name)
		}
	}
	if len(wrong) == 0 {
		return nil
	}
	slices.Sort(wrong)
	return errors.New(strings.Join(wrong, " and "))
}

type field struct {
	of       reflect.Type
	required bool
}

// fieldsOf returns the JSON members of a struct; some is false for another type and for one with its own JSON form.
func fieldsOf(of reflect.Type) (fields map[string]field, some bool) {
	for of.Kind() == reflect.Pointer {
		of = of.Elem()
	}
	if of.Kind() != reflect.Struct || reflect.PointerTo(of).Implements(reflect.TypeFor[json.Unmarshaler]()) {
		return nil, false
	}
	fields = map[string]field{}
	for _, f := range reflect.VisibleFields(of) {
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		if !f.IsExported() || name == "-" && options == "" || f.Anonymous && name == "" {
			continue
		}
		if name == "" {
			name = f.Name
		}
		fields[name] = field{f.Type, !strings.Contains(options, "omit")}
	}
	return fields, true
}

var plainName = regexp.MustCompile(`^[A-Za-z_]\w*$`)

// walk returns the JSONPath of the parts of a type; empty: the whole value.
func walk(of reflect.Type, parts []any) (path string, err error) {
	for _, part := range parts {
		for of != nil && of.Kind() == reflect.Pointer {
			of = of.Elem()
		}
		switch part := part.(type) {
		case int:
			path += fmt.Sprintf("[%d]", part)
			switch {
			case of == nil:
			case of.Kind() == reflect.Slice || of.Kind() == reflect.Array:
				of = of.Elem()
			default:
				return path, fmt.Errorf("%s is no array, so it has no [%d]", of, part)
			}
		case string:
			if plainName.MatchString(part) {
				path += "." + part
			} else {
				path += "['" + strings.NewReplacer(`\`, `\\`, `'`, `\'`).Replace(part) + "']"
			}
			if of == nil || of.Kind() == reflect.Map || of.Kind() == reflect.Interface {
				of = nil // anything
				continue
			}
			fields, some := fieldsOf(of)
			found, is := fields[part]
			if !is && (some || of.Kind() != reflect.Struct) {
				return path, fmt.Errorf("%s has no %s", of, part)
			}
			of = found.of // nil where a struct has a JSON form of its own
		default:
			return path, fmt.Errorf("%v is neither a member nor an index", part)
		}
	}
	if path != "" {
		path = "$" + path
	}
	return path, nil
}
