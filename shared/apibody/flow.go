package apibody

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/google/uuid"

	"github.com/jobweaver/jobweaver/shared/jobspec"
	"github.com/jobweaver/jobweaver/shared/jobstate"
	"github.com/jobweaver/jobweaver/shared/strictjson"
)

// Limits of a flow.
const (
	MaxFlowJobs  = 10_000
	MaxFlowEdges = 100_000 // entries in after, of all jobs together
	MaxFlowName  = 64
	MaxFanOuts   = 100
)

// MaxFlowRetryBytes bounds the body of a retry, which may name all jobs of a flow.
const MaxFlowRetryBytes = MaxFlowJobs*(MaxFlowName+8) + 1<<10

// Flow is a request for a flow: a closed batch whose jobs name each other.
type Flow struct {
	Batch

	Named []NamedJob // in the order of the request
}

// NamedJob is a job of a flow as sent, for jobspec.DecodeNamed.
type NamedJob struct {
	Name string
	Job  json.RawMessage
}

// DecodeFlow reads a flow. What is wrong inside its jobs is left to jobspec.DecodeNamed and DecodeFollowUp. The error
// is an *apierror.Error.
func DecodeFlow(body []byte) (Flow, error) {
	r := newReader(body)
	f := Flow{Batch: Batch{Closed: true}}
	seen := false
	complete := r.Object(func() {
		if string(r.Name) != "jobs" {
			if !r.batchMember(&f.Batch) {
				r.Unknown()
			}
			return
		}
		seen = true
		r.Object(func() {
			name := string(r.Name)
			job := NamedJob{name, json.RawMessage(r.Raw())}
			if wrong := CheckFlowName(name); wrong != "" {
				r.Bad("%s", wrong)
			}
			f.Named = append(f.Named, job)
		})
	})
	switch {
	case complete && !seen:
		r.BadAt("jobs", "is required")
	case complete && len(f.Named) == 0 && len(r.Problems) == 0:
		r.BadAt("jobs", "must have at least one job")
	case len(f.Named) > MaxFlowJobs:
		r.BadAt("jobs", "must have at most %d jobs, not %d", MaxFlowJobs, len(f.Named))
	}
	p := r.Close()
	return f, p.Err("job request")
}

// CheckFlowName returns what is wrong with the name of a job in its flow, or "".
func CheckFlowName(name string) string {
	wrong := name == "" || len(name) > MaxFlowName || strings.ContainsFunc(name, func(c rune) bool {
		return (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && c != '-' && c != '_'
	})
	if wrong {
		return fmt.Sprintf("must have a name of 1 to %d letters, digits, hyphens and underscores", MaxFlowName)
	}
	return ""
}

// FlowJob is a job in the graph of a flow.
type FlowJob struct {
	Name    string     `json:"name"`
	JobID   uuid.UUID  `json:"jobId"`
	JobType string     `json:"jobType"`
	After   []FlowEdge `json:"after"`
	ForEach *ForEach   `json:"forEach,omitempty"` // nil: it is no fan-out
}

// ForEach is the array for whose elements a fan-out is, as a client writes it.
type ForEach struct {
	Output string `json:"$output"`
	Path   string `json:"path"`
}

// NewForEach returns it; nil for nil.
func NewForEach(each *jobspec.ForEach) *ForEach {
	if each == nil {
		return nil
	}
	return &ForEach{each.Name, each.Path}
}

// FlowEdge is a job that has to end before another one.
type FlowEdge struct {
	Name  string             `json:"name,omitempty"` // empty: the job is not of the flow
	JobID uuid.UUID          `json:"jobId"`
	On    jobstate.Condition `json:"on"`
}

// FlowRetry is a request to run jobs of a flow again. Without any of the two, those that did not complete do.
type FlowRetry struct {
	From []string // the jobs with these names, and all that come after them
	All  bool
}

// DecodeFlowRetry reads it. An empty body asks for nothing special. The error is an *apierror.Error.
func DecodeFlowRetry(body []byte) (f FlowRetry, err error) {
	if len(bytes.TrimSpace(body)) == 0 {
		return f, nil
	}
	r := newReader(body)
	given := false
	r.Object(func() {
		switch string(r.Name) {
		case "from":
			given = true
			r.Array(MaxFlowJobs, func(int) {
				name, _ := r.Text(MaxFlowName)
				f.From = append(f.From, name)
			})
		case "all":
			f.All = r.Boolean()
		default:
			r.Unknown()
		}
	})
	if given && len(f.From) == 0 {
		r.BadAt("from", "must name at least one job")
	}
	if given && f.All {
		r.BadAt("all", "must not be true beside from")
	}
	p := r.Close()
	return f, p.Err("retry")
}

// Chosen returns the names of the jobs that run again as new ones. The error is an *apierror.Error.
func (f *FlowRetry) Chosen(graph []FlowJob) (map[string]bool, error) {
	chosen, children := make(map[string]bool, len(graph)), make(map[string][]string, len(graph))
	for i := range graph {
		chosen[graph[i].Name] = f.All
		for _, edge := range graph[i].After {
			if edge.Name != "" {
				children[edge.Name] = append(children[edge.Name], graph[i].Name)
			}
		}
	}
	var p strictjson.Problems
	for i, name := range f.From {
		if _, known := chosen[name]; !known {
			p.Add(fmt.Sprintf("from[%d]", i), fmt.Sprintf("no job of the flow has this name: %.100q", name))
		}
	}
	if err := p.Err("retry"); err != nil {
		return nil, err
	}
	for left := slices.Clone(f.From); len(left) > 0; {
		name := left[len(left)-1]
		if left = left[:len(left)-1]; !chosen[name] {
			chosen[name] = true
			left = append(left, children[name]...)
		}
	}
	maps.DeleteFunc(chosen, func(_ string, is bool) bool { return !is })
	return chosen, nil
}

// NewGraph returns the graph of a flow of decoded jobs. It refuses a flow in which jobs wait for each other, or which
// has too many edges. The error is an *apierror.Error.
func NewGraph(named []NamedJob, ids map[string]uuid.UUID, requests []jobspec.Request) ([]FlowJob, error) {
	names := make(map[uuid.UUID]string, len(ids))
	for name, id := range ids {
		names[id] = name
	}
	graph, edges, fanOuts := make([]FlowJob, len(named)), 0, 0
	for i, job := range named {
		req := &requests[i]
		node := FlowJob{Name: job.Name, JobID: ids[job.Name], JobType: req.JobType, After: make([]FlowEdge, len(req.After))}
		for at, id := range req.After {
			node.After[at] = FlowEdge{Name: names[id], JobID: id, On: req.Condition(at)}
		}
		if req.ForEach != nil {
			node.ForEach = NewForEach(req.ForEach)
			fanOuts++
		}
		graph[i], edges = node, edges+len(req.After)
	}
	var p strictjson.Problems
	if fanOuts > MaxFanOuts {
		p.Add("jobs", fmt.Sprintf("must have at most %d jobs with forEach, not %d", MaxFanOuts, fanOuts))
	}
	if edges > MaxFlowEdges {
		p.Add("jobs", fmt.Sprintf("must have at most %d entries in after together, not %d", MaxFlowEdges, edges))
	} else if cycle := findCycle(graph); cycle != nil {
		p.Add(strictjson.Join("jobs", cycle[0])+".after", "the jobs wait for each other: "+showCycle(cycle))
	}
	return graph, p.Err("job request")
}

// maxShown is how many names of a cycle a message has.
const maxShown = 20

func showCycle(cycle []string) string {
	if len(cycle) > maxShown {
		cycle = slices.Concat(cycle[:maxShown-2], []string{"…"}, cycle[len(cycle)-1:])
	}
	return strings.Join(cycle, " → ")
}

// findCycle returns the names of jobs each of which waits for the next, from one back to itself; nil: there are none.
func findCycle(graph []FlowJob) []string {
	at, left := make(map[string]int, len(graph)), make([]int, len(graph)) // left: for how many others each one waits
	children := make([][]int, len(graph))
	for i := range graph {
		at[graph[i].Name] = i
	}
	for i := range graph {
		for _, edge := range graph[i].After {
			if edge.Name != "" {
				left[i]++
				children[at[edge.Name]] = append(children[at[edge.Name]], i)
			}
		}
	}
	var ready []int
	for i, n := range left {
		if n == 0 {
			ready = append(ready, i)
		}
	}
	for len(ready) > 0 {
		last := len(ready) - 1
		i := ready[last]
		ready = ready[:last]
		for _, child := range children[i] {
			if left[child]--; left[child] == 0 {
				ready = append(ready, child)
			}
		}
	}
	next := slices.IndexFunc(left, func(n int) bool { return n > 0 })
	if next < 0 {
		return nil
	}
	// Each job that is left waits for another that is left: the walk comes back to where it was.
	var walked []string
	seen := map[int]int{}
	for {
		walked = append(walked, graph[next].Name)
		if from, again := seen[next]; again {
			return walked[from:]
		}
		seen[next] = len(walked) - 1
		i := slices.IndexFunc(graph[next].After, func(e FlowEdge) bool { return e.Name != "" && left[at[e.Name]] > 0 })
		next = at[graph[next].After[i].Name]
	}
}
