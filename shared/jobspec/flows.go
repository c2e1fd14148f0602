package jobspec

import (
	"fmt"
	"slices"
	"strings"

	"github.com/google/uuid"

	"github.com/jobweaver/jobweaver/shared/apierror"
	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/jobstate"
	"github.com/jobweaver/jobweaver/shared/strictjson"
)

// DecodeNamed is Decode for a job of a flow. Its after may have the names of other jobs of the flow, and its payload
// may refer to the outputs of the jobs in after.
func DecodeNamed(body []byte, names map[string]uuid.UUID) (Request, error) {
	if err := checkSize(body); err != nil {
		return Request{}, err
	}
	return decode(body, names, nil)
}

// dependencies are the entries of after, as they are read.
type dependencies struct {
	idList
	conditions []jobstate.Condition // of each entry; empty: it names none
	labels     map[string]uuid.UUID // each job by what a payload may call it
}

// after reads the jobs that have to end first. An entry is an id, or in a flow a name; or an object with one of them
// and the condition.
func (r reader) after() dependencies {
	d := dependencies{labels: map[string]uuid.UUID{}}
	r.Array(MaxAfter, func(int) {
		if r.Peek() != '{' {
			if text, ok := r.Text(MaxJobBytes); ok {
				r.add(&d, text, r.names != nil, "")
			}
			return
		}
		r.dependency(&d)
	})
	return d
}

func (r reader) dependency(d *dependencies) {
	var label, on string
	named, given := false, 0
	if !r.Object(func() {
		switch name := string(r.Name); {
		case name == "jobId", name == "name" && r.names != nil:
			named = name == "name"
			given++
			label, _ = r.Text(MaxJobBytes)
		case name == "on":
			on = r.OneOf(conditionTexts)
		default:
			r.Unknown()
		}
	}) {
		return
	}
	switch {
	case given != 1 && r.names != nil:
		r.Note("must have either a name or a jobId")
	case given != 1:
		r.Note("must have a jobId")
	case label != "":
		r.add(d, label, named, jobstate.Condition(on))
	}
}

var conditionTexts = func() (texts []string) {
	for _, c := range jobstate.Conditions() {
		texts = append(texts, string(c))
	}
	return texts
}()

// add adds a job by its name in the flow, or by its id.
func (r reader) add(d *dependencies, label string, named bool, on jobstate.Condition) {
	id := label
	if named {
		known, ok := r.names[label]
		if !ok {
			r.Note(fmt.Sprintf("no job of the flow has this name: %.100q", label))
			return
		}
		id = known.String()
	}
	if wrong := d.idList.add(id); wrong != "" {
		r.Note(wrong)
		return
	}
	d.labels[label] = d.ids[len(d.ids)-1]
	d.conditions = append(d.conditions, on)
}

// conditionsOf returns the condition of each entry, by default that of the whole request; nil: no entry names one.
func (d *dependencies) conditionsOf(runAnyway bool) []jobstate.Condition {
	if !slices.ContainsFunc(d.conditions, func(c jobstate.Condition) bool { return c != "" }) {
		return nil
	}
	byDefault := jobstate.WhenCompleted
	if runAnyway {
		byDefault = jobstate.WhenEnded
	}
	conditions := slices.Clone(d.conditions)
	for i := range conditions {
		if conditions[i] == "" {
			conditions[i] = byDefault
		}
	}
	return conditions
}

// inputsOf returns the jobs to whose outputs a payload refers, of those that it may call so. The payload of a fan-out
// has inputs, if only an empty list: it is completed later, and cannot be checked before.
func inputsOf(payload []byte, labels map[string]uuid.UUID, fansOut bool) ([]jobevent.Input, strictjson.Problems) {
	names, p := outputsOf(payload, fansOut)
	var inputs []jobevent.Input
	if fansOut {
		inputs = []jobevent.Input{}
	}
	for _, name := range names {
		id, ok := labels[name]
		if !ok {
			p.Add("payload", fmt.Sprintf("refers to the output of %.100q, which is not in after", name))
			continue
		}
		inputs = append(inputs, jobevent.Input{Name: name, JobID: id})
	}
	return inputs, p
}

// notOfFlows are what a job of a flow must not ask for: it could then be a job that exists.
func (r *Request) notOfFlows() (p strictjson.Problems) {
	for name, given := range map[string]bool{
		"idempotencyKey": r.IdempotencyKey != "" && r.JobID == uuid.Nil, "jobId": r.JobID != uuid.Nil,
		"batchId": r.BatchID != uuid.Nil, "unique": r.Unique != nil, "debounce": r.Debounce != nil,
		"singleton.else": r.Singleton != nil && r.Singleton.Else == SingletonDrop,
	} {
		if given {
			p.Add(name, "is not for a job of a flow")
		}
	}
	slices.SortFunc(p, func(a, b apierror.Detail) int { return strings.Compare(a.Path, b.Path) })
	return p
}

// Condition is how the job After[i] has to end.
func (r *Request) Condition(i int) jobstate.Condition {
	return (&jobevent.Created{Conditions: r.Conditions, RunAnyway: r.RunAnyway}).Condition(i)
}

// afterFields are the entries of after as a client writes them.
func (r *Request) afterFields() any {
	if len(r.Conditions) == 0 {
		return list(r.After)
	}
	entries := make([]map[string]any, len(r.After))
	for i, id := range r.After {
		entries[i] = map[string]any{"jobId": id, "on": r.Conditions[i]}
	}
	return entries
}

// conditionsByID are the conditions with their jobs, sorted.
func (r *Request) conditionsByID() []string {
	texts := make([]string, len(r.Conditions))
	for i, condition := range r.Conditions {
		texts[i] = r.After[i].String() + " " + string(condition)
	}
	slices.Sort(texts)
	return texts
}
