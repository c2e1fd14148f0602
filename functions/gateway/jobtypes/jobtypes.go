// Package jobtypes serves the job types, and checks payloads against the schemas that workers advertise.
package jobtypes

import (
	"encoding/json"
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
	Accepted    bool            `json:"accepted"` // false: workers advertise it, but JOB_TYPES does not list it
	Title       *string         `json:"title"`
	Description *string         `json:"description"`
	Schema      json.RawMessage `json:"schema"`
	Workers     int             `json:"workers"`
	Queues      []string        `json:"queues"`
}

// API has the endpoints of job types.
type API struct {
	Workers *workerstore.Store
	Rules   jobspec.Rules
}

// List is GET /api/job-types.
func (a *API) List(c *gin.Context) error {
	body, err := a.jobTypes(c)
	if err != nil {
		return err
	}
	return edge.Answer(c, http.StatusOK, body)
}

// Get is GET /api/job-types/{type}.
func (a *API) Get(c *gin.Context) error {
	body, err := a.jobTypes(c)
	if err != nil {
		return err
	}
	for _, t := range body.JobTypes {
		if t.Name == c.Param("type") {
			return edge.Answer(c, http.StatusOK, t)
		}
	}
	return apierror.New(apierror.NotFound, "no job type %q is known", c.Param("type"))
}

// jobTypes lists the built-in job types first, then the others by name.
func (a *API) jobTypes(c *gin.Context) (jobTypesBody, error) {
	ctx, cancel := edge.WithPatience(c)
	defer cancel()
	advertised, err := a.Workers.AdvertisedTypes(ctx)
	if err != nil {
		return jobTypesBody{}, err
	}
	owner := edge.WidestOwner(c)
	own := slices.Clone(a.Rules.JobTypes)
	for name, t := range advertised {
		if t.IsShownTo(owner) {
			own = append(own, name)
		}
	}
	own = slices.DeleteFunc(own, func(name string) bool { return name == "*" || slices.Contains(jobspec.Builtin(), name) })
	slices.Sort(own)
	body := jobTypesBody{JobTypes: []jobTypeBody{}, AcceptsAny: slices.Contains(a.Rules.JobTypes, "*")}
	for _, name := range append(jobspec.Builtin(), slices.Compact(own)...) {
		body.JobTypes = append(body.JobTypes, a.jobType(name, advertised[name]))
	}
	return body, nil
}

func (a *API) jobType(name string, advertised workerstore.AdvertisedType) jobTypeBody {
	body := jobTypeBody{
		Name: name, Builtin: slices.Contains(jobspec.Builtin(), name), Accepted: a.Rules.Accepts(name),
		Schema: jobspec.PayloadSchema(name), Workers: advertised.Workers, Queues: jobview.List(advertised.Queues),
	}
	if !body.Builtin && len(advertised.Schemas) > 0 && json.Valid(advertised.Schemas[0]) {
		body.Schema = advertised.Schemas[0]
	}
	var about struct{ Title, Description *string }
	if json.Unmarshal(body.Schema, &about) == nil {
		body.Title, body.Description = about.Title, about.Description
	}
	switch string(body.Schema) { // client generators need an object type
	case "true":
		body.Schema = json.RawMessage("{}")
	case "false":
		body.Schema = json.RawMessage(`{"not":{}}`)
	}
	return body
}
