package gateway

import (
	"encoding/json"
	"maps"
	"net/http"
	"slices"

	"github.com/gin-gonic/gin"

	"github.com/jobweaver/jobweaver/functions/gateway/edge"
	"github.com/jobweaver/jobweaver/shared/apidb/workerstore"
	"github.com/jobweaver/jobweaver/shared/apierror"
	"github.com/jobweaver/jobweaver/shared/jobspec"
	"github.com/jobweaver/jobweaver/shared/jobview"
)

type jobTypesBody struct {
	JobTypes   []jobTypeBody `json:"jobTypes"`
	AcceptsAny bool          `json:"acceptsAny"`
}

type jobTypeBody struct {
	Name        string          `json:"name"`
	Builtin     bool            `json:"builtin"`
	Accepted    bool            `json:"accepted"` // false: workers tell of it, but JOB_TYPES does not list it
	Title       *string         `json:"title"`
	Description *string         `json:"description"`
	Schema      json.RawMessage `json:"schema"`
	Workers     int             `json:"workers"`
	Queues      []string        `json:"queues"`
}

// listJobTypes is GET /api/job-types.
func (f *Function) listJobTypes(c *gin.Context) error {
	body, err := f.jobTypes(c)
	if err != nil {
		return err
	}
	c.JSON(http.StatusOK, body)
	return nil
}

// getJobType is GET /api/job-types/{type}.
func (f *Function) getJobType(c *gin.Context) error {
	body, err := f.jobTypes(c)
	if err != nil {
		return err
	}
	for _, t := range body.JobTypes {
		if t.Name == c.Param("type") {
			c.JSON(http.StatusOK, t)
			return nil
		}
	}
	return apierror.New(apierror.NotFound, "no job type %q is known", c.Param("type"))
}

// jobTypes lists the built-in ones first, then the others by name.
func (f *Function) jobTypes(c *gin.Context) (jobTypesBody, error) {
	ctx, cancel := edge.WithPatience(c)
	defer cancel()
	told, err := f.store.workers.AdvertisedTypes(ctx)
	if err != nil {
		return jobTypesBody{}, err
	}
	own := slices.AppendSeq(slices.Clone(f.rules.JobTypes), maps.Keys(told))
	own = slices.DeleteFunc(own, func(name string) bool { return name == "*" || slices.Contains(jobspec.Builtin(), name) })
	slices.Sort(own)
	body := jobTypesBody{JobTypes: []jobTypeBody{}, AcceptsAny: slices.Contains(f.rules.JobTypes, "*")}
	for _, name := range append(jobspec.Builtin(), slices.Compact(own)...) {
		body.JobTypes = append(body.JobTypes, f.jobType(name, told[name]))
	}
	return body, nil
}

func (f *Function) jobType(name string, told workerstore.AdvertisedType) jobTypeBody {
	body := jobTypeBody{
		Name: name, Builtin: slices.Contains(jobspec.Builtin(), name), Accepted: f.rules.Accepts(name),
		Schema: jobspec.PayloadSchema(name), Workers: told.Workers, Queues: jobview.List(told.Queues),
	}
	if !body.Builtin && len(told.Schemas) > 0 && json.Valid(told.Schemas[0]) {
		body.Schema = told.Schemas[0]
	}
	var about struct{ Title, Description *string }
	if json.Unmarshal(body.Schema, &about) == nil {
		body.Title, body.Description = about.Title, about.Description
	}
	switch string(body.Schema) { // generators of clients want one type
	case "true":
		body.Schema = json.RawMessage("{}")
	case "false":
		body.Schema = json.RawMessage(`{"not":{}}`)
	}
	return body
}
