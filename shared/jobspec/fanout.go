package jobspec

import (
	"fmt"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/uuid"

	"github.com/jobweaver/jobweaver/shared/apierror"
	"github.com/jobweaver/jobweaver/shared/jobstate"
	"github.com/jobweaver/jobweaver/shared/strictjson"
)

// Limits of a fan-out.
const (
	MaxElements      = 10_000
	MaxElementsBytes = MaxBatchBytes // of the payloads of all jobs of elements together
)

// ForEach has a job of a flow become one job for each element of an array in the output of another one. This is also
// the form in which it is stored.
type ForEach struct {
	Name  string    `json:"name"` // of the other job in the flow
	JobID uuid.UUID `json:"jobId"`
	Path  string    `json:"path"`

	// What the jobs of the elements have. The fan-out itself only has a place in their order.
	OrderingKey string `json:"orderingKey,omitempty"`
	CallbackURL string `json:"callbackUrl,omitempty"`
	Policies
}

// Element is the place of a job in its fan-out.
type Element struct {
	FanOut uuid.UUID
	Index  int
}

// forEach reads the reference to the array.
func (r reader) forEach() *ForEach {
	at := string(r.Name)
	ref, p := readReference(r.Raw(), at, false)
	switch {
	case r.names == nil:
		r.BadAt(at, "is only for a job of a flow")
		return nil
	case ref == nil:
		r.BadAt(at, `must be a reference such as {"$output": "list", "path": "$.items"}`)
		return nil
	case len(p) > 0:
		r.Problems.AddAll(p)
		return nil
	case ref.fallback != nil:
		r.BadAt(at, "must have no default")
	}
	return &ForEach{Name: ref.name, Path: ref.path}
}

// checkForEach finds the job that makes the array.
func (r *Request) checkForEach(labels map[string]uuid.UUID) (p strictjson.Problems) {
	if r.ForEach == nil {
		return nil
	}
	id, known := labels[r.ForEach.Name]
	if !known {
		p.Add("forEach", fmt.Sprintf("refers to the output of %.100q, which is not in after", r.ForEach.Name))
		return p
	}
	r.ForEach.JobID = id
	for i := range r.After {
		if r.After[i] == id && r.Condition(i) == jobstate.WhenFailed {
			p.Add("forEach", fmt.Sprintf("refers to the output of %.100q, for whose failure the job waits", r.ForEach.Name))
		}
	}
	return p
}

// FanOut returns the request of the fan-out itself: what must hold for each job of an element is put aside. In the
// order of its key, the fan-out keeps the place for these jobs, which come right before it.
func (r Request) FanOut() Request {
	if r.ForEach == nil {
		return r
	}
	kept := *r.ForEach
	kept.OrderingKey, kept.CallbackURL, kept.Policies = r.OrderingKey, r.CallbackURL, r.Policies
	r.ForEach, r.OrderingKey, r.CallbackURL, r.Policies = &kept, r.LineKey(), "", Policies{}
	return r
}

// OfElement returns the request of the job of an element, without its payload. All that the fan-out came after has
// ended; the job comes after those to whose outputs its payload refers.
func (r Request) OfElement(at Element) Request {
	each := r.ForEach
	r.OrderingKey, r.CallbackURL, r.Policies = each.OrderingKey, each.CallbackURL, each.Policies
	r.ForEach, r.Element, r.Payload = nil, &at, nil
	r.After, r.Conditions, r.RunAnyway = nil, nil, false
	for _, input := range r.Inputs {
		r.After, r.Conditions = append(r.After, input.JobID), append(r.Conditions, jobstate.WhenEnded)
	}
	return r
}

// Elements returns the elements of the array to which a fan-out refers. The error is an *OutputError.
func (f *ForEach) Elements(output jsontext.Value) (elements []jsontext.Value, err error) {
	refuse := func(format string, args ...any) ([]jsontext.Value, error) {
		return nil, &OutputError{apierror.InvalidFanOut, fmt.Sprintf(format, args...)}
	}
	array, has := selectPath(output, f.Path)
	switch {
	case output == nil || !has:
		return refuse("the output of %s has no %s", f.Name, f.Path)
	case isTooLarge(array):
		return refuse("the outputs of %s are too large", f.Name)
	case array.Kind() != '[':
		return refuse("%s of the output of %s is not an array", f.Path, f.Name)
	}
	err = eachElement(array, func(i int, element jsontext.Value) error {
		if i >= MaxElements {
			_, err := refuse("%s of the output of %s has more than %d elements", f.Path, f.Name, MaxElements)
			return err
		}
		elements = append(elements, element.Clone())
		return nil
	})
	return elements, err
}

// FillInItem puts an element and its index into the payload of a fan-out. References to outputs stay. The error is an
// *OutputError.
func FillInItem(payload []byte, element jsontext.Value, index int) ([]byte, error) {
	refersToOutputs, room := false, MaxFilledBytes
	var f filler
	f.replace = f.references(true, func(ref *reference, at string) (jsontext.Value, error) {
		var value jsontext.Value
		switch ref.item {
		case "":
			refersToOutputs = true
			return ref.raw, nil
		case itemIndex:
			return strconv.AppendInt(nil, int64(index), 10), nil
		default:
			value = ref.fallback
			if found, is := selectPath(element, ref.path); is {
				value = found
			}
		}
		if value == nil {
			return nil, &OutputError{apierror.InvalidFanOut, fmt.Sprintf("%s: element %d has no %s", at, index, ref.path)}
		}
		if room -= len(value); room < 0 {
			return nil, filledTooLarge()
		}
		return value, nil
	})
	filled, err := f.fill(make([]byte, 0, len(payload)+len(element)), payload, "payload")
	switch {
	case err != nil:
	case len(filled) > MaxFilledBytes:
		err = filledTooLarge()
	case refersToOutputs:
		// The worker would read it as a reference.
		if names, p := Outputs(element); len(names) > 0 || len(p) > 0 {
			message := fmt.Sprintf("element %d has a member %s, and the payload refers to outputs", index, outputMark)
			err = &OutputError{apierror.InvalidFanOut, message}
		}
	}
	return filled, err
}

// tooLargeMark is the member of the output of a fan-out whose outputs have more bytes together than a job may use.
const tooLargeMark = "$tooLarge"

// TooLarge returns the output of such a fan-out.
func TooLarge(bytes int64) []byte { return fmt.Appendf(nil, `{%q:%d}`, tooLargeMark, bytes) }

func isTooLarge(output jsontext.Value) (is bool) {
	if len(output) > len(TooLarge(1<<62)) {
		return false
	}
	members := 0
	_ = eachMember(output, func(name string, _ jsontext.Value) error { // an output is sound JSON
		members++
		is = name == tooLargeMark
		return nil
	})
	return is && members == 1
}
