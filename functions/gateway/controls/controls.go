// Package controls serves the pauses and limits of queues, job types, owners and fairness keys, and the weights of the
// last.
package controls

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/google/uuid"

	"github.com/jobweaver/jobweaver/functions/gateway/audit"
	"github.com/jobweaver/jobweaver/functions/gateway/changes"
	"github.com/jobweaver/jobweaver/functions/gateway/edge"
	"github.com/jobweaver/jobweaver/functions/gateway/publishbuffer"
	"github.com/jobweaver/jobweaver/functions/gateway/queues"
	"github.com/jobweaver/jobweaver/shared/apibody"
	"github.com/jobweaver/jobweaver/shared/apidb"
	"github.com/jobweaver/jobweaver/shared/apidb/controlstore"
	"github.com/jobweaver/jobweaver/shared/apidb/workerstore"
	"github.com/jobweaver/jobweaver/shared/apierror"
	"github.com/jobweaver/jobweaver/shared/apievent"
	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/jobview"
)

const (
	// appliedPatience is how long a response waits for the scheduler to apply a control.
	appliedPatience = 5 * time.Second
	// appliedMost is the longest pause between two reads.
	appliedMost = 100 * time.Millisecond
)

type body struct {
	Kind            jobevent.ControlKind `json:"kind"`
	Name            string               `json:"name"`
	Paused          bool                 `json:"paused"`
	MaxRunning      *int                 `json:"maxRunning"`
	StartsPerSecond *float64             `json:"startsPerSecond"`
	Weight          *int                 `json:"weight"` // null: not of a fairness key
	Version         int64                `json:"version"`
	Applied         bool                 `json:"applied"`
	UpdatedAt       *time.Time           `json:"updatedAt"`
	UpdatedBy       *string              `json:"updatedBy"`
}

func newBody(c controlstore.Control, applied bool) body {
	b := body{
		Kind: c.Kind, Name: c.Name, Paused: c.Paused, MaxRunning: c.MaxRunning, StartsPerSecond: c.StartsPerSecond,
		Version: c.Version, Applied: applied, UpdatedBy: jobview.Given(c.UpdatedBy),
	}
	if weighs(c.Kind, c.Name) {
		weight := max(c.Weight, 1)
		b.Weight = &weight
	}
	if c.Version > 0 {
		b.UpdatedAt = jobview.UTC(&c.UpdatedAt)
	}
	return b
}

type listBody struct {
	Controls []body `json:"controls"`
}

// API has the endpoints of controls.
type API struct {
	Store    *controlstore.Store
	Workers  *workerstore.Store
	Queues   *queues.Installation
	Hub      *changes.Hub
	Outgoing *publishbuffer.Buffer
	Limits   *edge.Limits
	Closing  <-chan struct{} // closed when the process is about to end
}

// List is GET /api/controls.
func (a *API) List(c *gin.Context) error {
	ctx, cancel := edge.WithPatience(c)
	defer cancel()
	controls, err := a.Store.Controls(ctx, edge.OwnerOf(c))
	if err != nil {
		return err
	}
	body := listBody{Controls: make([]body, len(controls))}
	for i, control := range controls {
		body.Controls[i] = newBody(control, control.Applied())
	}
	return edge.Answer(c, http.StatusOK, body)
}

// Get is GET /api/controls/{kind}/{name}. A control that was never set has version 0.
func (a *API) Get(c *gin.Context) error {
	kind, name, err := subject(c)
	if err != nil {
		return err
	}
	ctx, cancel := edge.WithPatience(c)
	defer cancel()
	control, err := a.Store.Control(ctx, edge.OwnerOf(c), kind, name)
	if err != nil {
		return err
	}
	return answer(c, control, control.Applied())
}

// answer shows one control, with the tag that If-Match compares.
func answer(c *gin.Context, control controlstore.Control, applied bool) error {
	c.Header("ETag", tag(control.Version))
	return edge.Answer(c, http.StatusOK, newBody(control, applied))
}

// tag is the entity tag of what can be changed. That the scheduler has applied it leaves it as it is, so it is weak.
func tag(version int64) string { return fmt.Sprintf(`W/"%d"`, version) }

// Put is PUT /api/controls/{kind}/{name}.
func (a *API) Put(c *gin.Context) error {
	body, err := edge.ReadJSON(c, apibody.MaxControlBytes)
	if err != nil {
		return err
	}
	asked, err := apibody.DecodeControl(body)
	if err != nil {
		return err
	}
	entry, err := audit.EntryOf(c, "", json.RawMessage(body))
	if err != nil {
		return err
	}
	kind, name := jobevent.ControlKind(c.Param("kind")), c.Param("name")
	switch {
	case asked.Weight != 0 && !weighs(kind, name):
		return edge.Invalid("weight", "is only of one fairness key")
	case asked.Paused && isEachKey(kind, name):
		return edge.Invalid("paused", stopsEachKey)
	case asked.MaxRunning != nil && *asked.MaxRunning == 0 && isEachKey(kind, name):
		return edge.Invalid("maxRunning", stopsEachKey)
	}
	return a.holding(c, entry, func(control *jobevent.Control) {
		control.Paused, control.MaxRunning, control.StartsPerSecond = asked.Paused, asked.MaxRunning, asked.StartsPerSecond
		control.Weight = asked.Weight
	})
}

// Delete is DELETE /api/controls/{kind}/{name}: it removes the pause and the limits.
func (a *API) Delete(c *gin.Context) error {
	return a.change(c, audit.Entry(c), func(control *jobevent.Control) {
		control.Paused, control.MaxRunning, control.StartsPerSecond, control.Weight = false, nil, nil, 0
	})
}

// Pause is POST /api/controls/{kind}/{name}/pause.
func (a *API) Pause(c *gin.Context) error {
	if isEachKey(jobevent.ControlKind(c.Param("kind")), c.Param("name")) {
		return edge.Invalid("name", stopsEachKey)
	}
	return a.holding(c, audit.Entry(c), func(control *jobevent.Control) { control.Paused = true })
}

// Resume is POST /api/controls/{kind}/{name}/resume.
func (a *API) Resume(c *gin.Context) error {
	return a.change(c, audit.Entry(c), func(control *jobevent.Control) { control.Paused = false })
}

// weighs reports whether a control has a weight.
func weighs(kind jobevent.ControlKind, name string) bool {
	return kind == jobevent.ControlKey && name != jobevent.AnyName
}

// isEachKey reports whether a control applies to each fairness key that has no control of its own.
func isEachKey(kind jobevent.ControlKind, name string) bool {
	return kind == jobevent.ControlKey && name == jobevent.AnyName
}

// stopsEachKey is the reason why no control stops every key: the scheduler would look through all of them for nothing.
const stopsEachKey = "must not stop every fairness key: pause queue/* instead"

// holding is change for a pause or limit, whose queue must be one of this installation. The control of a former queue
// can still be removed.
func (a *API) holding(c *gin.Context, entry *apidb.Audit, change func(*jobevent.Control)) error {
	kind, name := jobevent.ControlKind(c.Param("kind")), c.Param("name")
	if kind == jobevent.ControlQueue && name != jobevent.AnyName {
		if err := a.checkQueue(c, name); err != nil {
			return err
		}
	}
	return a.change(c, entry, change)
}

func (a *API) checkQueue(c *gin.Context, name string) error {
	ctx, cancel := edge.WithPatience(c)
	defer cancel()
	if is, err := a.Queues.Has(ctx, name); err != nil || is {
		return err
	}
	names, err := a.Queues.Names(ctx)
	if err != nil {
		return err
	}
	return edge.Invalid("name", "is not one of the queues of this installation, which are "+strings.Join(names, ", "))
}

// change commits a change of a control, publishes it, and waits a while for the scheduler to apply it.
func (a *API) change(c *gin.Context, entry *apidb.Audit, change func(*jobevent.Control)) error {
	kind, name, err := subject(c)
	if err != nil {
		return err
	}
	ctx, cancel := edge.WithPatience(c)
	defer cancel()
	control, applied, err := a.put(ctx, c, entry, kind, name, change)
	if err != nil {
		return err
	}
	return answer(c, control, applied)
}

func (a *API) put(
	ctx context.Context, c *gin.Context, entry *apidb.Audit, kind jobevent.ControlKind, name string,
	change func(*jobevent.Control),
) (control controlstore.Control, applied bool, err error) {
	var match func(int64) bool
	if named := edge.Match(c.Request); named != nil {
		match = func(version int64) bool { return named(tag(version)) }
	}
	control, err = a.Store.ChangeControl(ctx, entry, edge.OwnerOf(c), kind, name, audit.Actor(c), match, change)
	if err != nil {
		return control, false, err
	}
	a.Hub.Announce(apidb.ChangeControls, uuid.Nil)
	if control.Applied() {
		return control, true, nil
	}
	e, err := apievent.Control(control)
	if err != nil {
		return control, false, err
	}
	a.Outgoing.Add([]jobevent.Item{e})
	if release, err := a.Limits.HoldAnswer(c); err == nil { // if it fails, the response does not wait
		defer release()
		applied = a.applied(ctx, edge.OwnerOf(c), control)
	}
	return control, applied, nil
}

// applied waits until the scheduler has applied a version, or a later one. The change is committed already, so an error
// here does not fail the request.
func (a *API) applied(ctx context.Context, owner apidb.Owner, asked controlstore.Control) bool {
	ctx, cancel := context.WithTimeout(ctx, appliedPatience)
	defer cancel()
	for pause := 5 * time.Millisecond; ; pause = min(2*pause, appliedMost) {
		select {
		case <-ctx.Done():
			return false
		case <-a.Closing:
			return false
		case <-time.After(pause):
		}
		now, err := a.Store.Control(ctx, owner, asked.Kind, asked.Name)
		if err == nil && (now.Version == 0 || now.AppliedVersion >= asked.Version) {
			return true
		}
	}
}

// subject returns what a control applies to. Only the installation controls queues and job types. Another client gets a
// 403 for them and not a 404, because their existence is no secret.
func subject(c *gin.Context) (kind jobevent.ControlKind, name string, err error) {
	kind, name = jobevent.ControlKind(c.Param("kind")), c.Param("name")
	check := map[jobevent.ControlKind]func(string) error{
		jobevent.ControlQueue: apibody.CheckQueue, jobevent.ControlType: apibody.CheckJobType,
		jobevent.ControlOwner: apibody.CheckOwner, jobevent.ControlKey: apibody.CheckOwner,
	}[kind]
	switch {
	case check == nil:
		err = edge.Invalid("kind", "must be queue, type, owner or fairnessKey")
	case name != jobevent.AnyName:
		err = check(name)
	case kind == jobevent.ControlOwner:
		err = edge.Invalid("name", "must be one owner; fairnessKey/* limits each: an owner is the key of its jobs")
	}
	if err == nil && kind != jobevent.ControlOwner && !edge.IsInstallation(c) && !seesKey(c, kind, name) {
		err = apierror.New(apierror.Forbidden,
			"only an admin of the installation controls queues, job types and fairness keys")
	}
	return kind, name, err
}

// seesKey reports whether a request only sees the control of its owner's fairness key.
func seesKey(c *gin.Context, kind jobevent.ControlKind, name string) bool {
	return c.Request.Method == http.MethodGet && kind == jobevent.ControlKey && name == edge.OwnerOf(c).ID()
}
