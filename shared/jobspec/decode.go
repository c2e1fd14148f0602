package jobspec

import (
	"context"
	"encoding/json"
	"slices"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/uuid"

	"github.com/jobweaver/jobweaver/shared/apierror"
	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/strictjson"
)

// Decode reads one job request and fills in its defaults. It returns all that is wrong as an *apierror.Error, except
// what depends on the installation, which Validate checks.
func Decode(body []byte) (Request, error) {
	if err := checkSize(body); err != nil {
		return Request{}, err
	}
	return decode(body, nil, nil)
}

// decode is Decode of a request whose size has been checked. names are the jobs of its flow, and inputs those to whose
// outputs its payload may refer besides.
func decode(body []byte, names map[string]uuid.UUID, inputs []jobevent.Input) (Request, error) {
	if p := strictjson.Scan(body, ""); p != nil {
		return Request{}, p.Err("job request")
	}
	r := reader{strictjson.NewReader(body, ""), names}
	req, labels, complete := r.request()
	p := r.Close()
	if names != nil {
		p.AddAll(req.notOfFlows())
	}
	for _, input := range inputs {
		if labels == nil {
			labels = make(map[string]uuid.UUID, len(inputs))
		}
		labels[input.Name] = input.JobID
	}
	if complete && (names != nil || inputs != nil) {
		var wrong strictjson.Problems
		req.Inputs, wrong = inputsOf(req.Payload, labels, req.ForEach != nil)
		p.AddAll(wrong)
		p.AddAll(req.checkForEach(labels))
	}
	if complete && req.Inputs == nil { // else the worker checks the payload when it has the outputs
		p.AddAll(checkPayload(req))
	}
	if err := p.Err("job request"); err != nil {
		return Request{}, err
	}
	return req, nil
}

// DecodeBatch splits {"jobs": […]} into its jobs, each as sent, for Decode. What is wrong inside a
// job is left to Decode, so that it does not spoil the others; broken JSON spoils them all.
func DecodeBatch(body []byte) ([]json.RawMessage, error) {
	r := strictjson.NewReader(body, "", jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	var jobs []json.RawMessage
	seen := false
	ok := r.Object(func() {
		if string(r.Name) != "jobs" {
			r.Unknown()
			return
		}
		if seen {
			r.BadAt("jobs", "is there twice")
		}
		seen = true
		r.Array(MaxBatchJobs, func(int) { jobs = append(jobs, json.RawMessage(r.Raw())) })
	})
	switch {
	case ok && !seen:
		r.BadAt("jobs", "is required")
	case ok && len(jobs) == 0 && len(r.Problems) == 0:
		r.BadAt("jobs", "must have at least one job")
	}
	if p := r.Close(); len(p) > 0 {
		return nil, p.Err("job request")
	}
	return jobs, nil
}

func checkSize(job []byte) error {
	if len(job) <= MaxJobBytes {
		return nil
	}
	return apierror.New(apierror.PayloadTooLarge,
		"a job may have at most %d bytes, this one has %d", MaxJobBytes, len(job))
}

// CheckPayload checks a payload that was completed after its request had been decoded.
func CheckPayload(req Request, rules Rules) error {
	p := checkPayload(req)
	p.AddAll(req.checkTarget(rules))
	return p.Err("job request")
}

func checkPayload(req Request) strictjson.Problems {
	if req.JobType == Simulation {
		_, p := parseSimulation(req.Payload)
		return p
	}
	schema := builtinSchema()[req.JobType]
	if schema == nil {
		return nil
	}
	p, err := schema.Problems(context.Background(), req.Payload) // a trusted schema has no bound
	if err != nil {
		p.Add("payload", err.Error())
	}
	return p
}

// reader reads what requests and settings have in common.
type reader struct {
	*strictjson.Reader

	names map[string]uuid.UUID // of the jobs of a flow; nil: the request is in none
}

func newReader(doc []byte, root string) reader { return reader{strictjson.NewReader(doc, root), nil} }

// request reads the members of a request. labels are the names by which its payload may refer to jobs in after;
// complete: its payload can be checked.
func (r reader) request() (req Request, labels map[string]uuid.UUID, complete bool) {
	d := draft{Request: silent()}
	var in input = r
	complete = r.Object(func() { memberOf[string(r.Name)].fromBody(r, in, &d) })
	if complete && !d.hasType {
		r.BadAt("jobType", "is required")
	}
	if complete && !d.hasPayload {
		r.BadAt("payload", "is required")
	}
	if d.RunAt != nil && d.hasDelay {
		r.BadAt("delayMs", bothTimes)
	}
	r.nameByID(&d.Request)
	if complete && d.hasOnFailure && !d.hasAfter {
		r.BadAt("onDependencyFailure", onlyWithAfter)
	}
	r.checkPolicies(&d.Request, d.RunAt != nil || d.hasDelay)
	d.RunAnyway = d.RunAnyway && len(d.After) > 0
	d.Conditions = d.after.conditionsOf(d.RunAnyway)
	return d.Request, d.after.labels, complete && d.hasPayload
}

// nameByID makes the id that the client has made the idempotency key, too.
func (r reader) nameByID(req *Request) {
	if req.JobID == uuid.Nil {
		return
	}
	if req.IdempotencyKey != "" {
		r.BadAt("jobId", "and idempotencyKey exclude each other")
	}
	req.IdempotencyKey = req.JobID.String()
}

const (
	bothTimes     = "and runAt exclude each other"
	onlyWithAfter = "goes only with after"
)

// parseGivenID reads the id of a job that the client has made.
func parseGivenID(s string) (id uuid.UUID, wrong string) {
	id, err := uuid.Parse(s)
	if err != nil || id.String() != s || id.Version() != 7 || id.Variant() != uuid.RFC4122 {
		return uuid.Nil, "must be a UUID of version 7, as 01936f3e-5f3e-7cc0-8000-0123456789ab"
	}
	return id, ""
}

func (r reader) tags() []string {
	var tags []string
	r.Array(MaxTags, func(int) {
		if tag := r.Label(MaxTag); tag != "" && slices.Contains(tags, tag) {
			r.Bad("is there twice")
		} else {
			tags = append(tags, tag)
		}
	})
	return tags
}
