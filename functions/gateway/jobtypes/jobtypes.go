// Package jobtypes serves the job types, and checks payloads against the schemas that workers advertise.
package jobtypes

import (
	"cmp"
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"time"

	"github.com/gin-gonic/gin"

	"github.com/jobweaver/jobweaver/functions/gateway/access"
	"github.com/jobweaver/jobweaver/functions/gateway/audit"
	"github.com/jobweaver/jobweaver/functions/gateway/edge"
	"github.com/jobweaver/jobweaver/shared/apibody"
	"github.com/jobweaver/jobweaver/shared/apidb"
	"github.com/jobweaver/jobweaver/shared/apidb/typestore"
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
	Title       *string         `json:"title"`
	Description *string         `json:"description"`
	Schema      json.RawMessage `json:"schema"`
	Output      json.RawMessage `json:"outputSchema"`
	Workers     int             `json:"workers"`
	Queues      []string        `json:"queues"`
}

// API has the endpoints of job types.
type API struct {
	Workers *workerstore.Store
	Types   *typestore.Store
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
	return unknown(c.Param("type"))
}

// jobTypes lists the built-in job types first, then the others by name.
func (a *API) jobTypes(c *gin.Context) (jobTypesBody, error) {
	ctx, cancel := edge.WithPatience(c)
	defer cancel()
	advertised, err := a.Workers.AdvertisedTypes(ctx)
	if err != nil {
		return jobTypesBody{}, err
	}
	owner := edge.OwnerOf(c)
	types, err := a.Types.List(ctx, owner)
	if err != nil {
		return jobTypesBody{}, err
	}
	learned := map[string]*apibody.JobType{}
	own := slices.Clone(a.Rules.JobTypes)
	for i := range slices.Backward(types) { // an owner's own comes first
		learned[types[i].Name] = &types[i].JobType
		own = append(own, types[i].Name)
	}
	for name, t := range advertised {
		if t.IsShownTo(owner) {
			own = append(own, name)
		}
	}
	own = slices.DeleteFunc(own, func(name string) bool {
		return name == jobspec.AnyType || slices.Contains(jobspec.Builtin(), name)
	})
	slices.Sort(own)
	body := jobTypesBody{JobTypes: []jobTypeBody{}, AcceptsAny: slices.Contains(a.Rules.JobTypes, jobspec.AnyType)}
	for _, name := range append(jobspec.Builtin(), slices.Compact(own)...) {
		body.JobTypes = append(body.JobTypes, a.jobType(name, advertised[name], learned[name]))
	}
	return body, nil
}

// jobType describes a type. What live workers advertise comes before what was learned; learned may be nil.
func (a *API) jobType(
	name string, advertised workerstore.AdvertisedType, learned *apibody.JobType,
) jobTypeBody {
	body := jobTypeBody{
		Name: name, Builtin: slices.Contains(jobspec.Builtin(), name),
		Schema: jobspec.PayloadSchema(name), Workers: advertised.Workers, Queues: jobview.List(advertised.Queues),
	}
	if learned == nil || body.Builtin {
		learned = &apibody.JobType{}
	}
	body.Output = learned.OutputSchema
	switch {
	case body.Builtin:
	case len(advertised.Schemas) > 0 && json.Valid(advertised.Schemas[0]):
		body.Schema = advertised.Schemas[0]
	default:
		body.Schema = learned.Schema
	}
	var about struct{ Title, Description *string }
	if json.Unmarshal(body.Schema, &about) == nil {
		body.Title, body.Description = about.Title, about.Description
	}
	body.Title, body.Description = cmp.Or(learned.Title, body.Title), cmp.Or(learned.Description, body.Description)
	body.Schema, body.Output = object(body.Schema), object(body.Output)
	return body
}

// object returns a schema as the object that client generators need.
func object(schema json.RawMessage) json.RawMessage {
	switch string(schema) {
	case "true":
		return json.RawMessage("{}")
	case "false":
		return json.RawMessage(`{"not":{}}`)
	}
	return schema
}

// Put is PUT /api/job-types/{type}: a worker that starts describes a type that it runs.
func (a *API) Put(c *gin.Context) error {
	name, err := NameIn(c)
	if err != nil {
		return err
	}
	definition, err := edge.ReadAs(c, apibody.MaxJobTypeBytes, apibody.DecodeJobType)
	if err != nil {
		return err
	}
	ctx, cancel := edge.WithPatience(c)
	defer cancel()
	t := typestore.Type{OwnerID: edge.MakerOf(c).ID(), Name: name, JobType: definition}
	if err := a.Types.Put(ctx, audit.Entry(c), t); err != nil {
		return err
	}
	c.Status(http.StatusNoContent)
	return nil
}

// Delete is DELETE /api/job-types/{type}: the installation forgets a type that it has learned.
func (a *API) Delete(c *gin.Context) error {
	name, err := NameIn(c)
	if err != nil {
		return err
	}
	ctx, cancel := edge.WithPatience(c)
	defer cancel()
	is, err := a.Types.Forget(ctx, audit.Entry(c), edge.MakerOf(c).ID(), name)
	if err != nil {
		return err
	}
	if !is {
		return unknown(name)
	}
	c.Status(http.StatusNoContent)
	return nil
}

// NameIn returns the type in the path, which is not a built-in one and which the request's key covers.
func NameIn(c *gin.Context) (string, error) {
	name := c.Param("type")
	if wrong := jobspec.WrongJobType(name); wrong != "" {
		return "", edge.Invalid("type", wrong)
	}
	if slices.Contains(jobspec.Builtin(), name) {
		return "", apierror.New(apierror.InvalidStateTransition, "%s is built in", name)
	}
	if allowed := access.Of(c.Request.Context()).Types; len(allowed) > 0 && !slices.Contains(allowed, name) {
		return "", apierror.New(apierror.Forbidden, "the API key does not cover the job type %s", name)
	}
	return name, nil
}

func unknown(name string) error {
	return apierror.New(apierror.NotFound, "no job type %q is known", name)
}

// learnPatience bounds the look for a learned type.
const learnPatience = 5 * time.Second

// Learned answers jobspec.Rules.
func Learned(types *typestore.Store) func(owner, jobType string) (is bool, names []string, err error) {
	return func(owner, jobType string) (bool, []string, error) {
		ctx, cancel := context.WithTimeout(context.Background(), learnPatience)
		defer cancel()
		found, err := types.Find(ctx, owner, jobType, true)
		if err != nil || len(found) > 0 {
			return len(found) > 0, nil, err
		}
		all, err := types.List(ctx, apidb.OwnerOf(owner))
		names := make([]string, 0, len(all))
		for i := range all {
			names = append(names, all[i].Name)
		}
		return false, names, err
	}
}
