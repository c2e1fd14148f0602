package gateway

import (
	"errors"
	"maps"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/gin-gonic/gin"

	"github.com/jobweaver/jobweaver/functions/gateway/access"
	"github.com/jobweaver/jobweaver/functions/gateway/edge"
	"github.com/jobweaver/jobweaver/functions/gateway/hooks"
	"github.com/jobweaver/jobweaver/shared/apidb"
	"github.com/jobweaver/jobweaver/shared/apidb/jobstore"
	"github.com/jobweaver/jobweaver/shared/apierror"
	"github.com/jobweaver/jobweaver/shared/jobspec"
	"github.com/jobweaver/jobweaver/shared/jobview"
	"github.com/jobweaver/jobweaver/shared/reload"
	"github.com/jobweaver/jobweaver/shared/telemetry"
)

// hookPath takes signed requests of other systems, each of which has a hook.
const hookPath = "/hooks/:name"

// inbound is the hooks of HOOKS_FILE, with what this process has counted of each.
type inbound struct {
	hooks *reload.Files[hooks.Set] // nil: there is no file

	mu     sync.Mutex
	counts map[string]*hookCounts // by name, so that they outlive a change of the file
}

type hookCounts struct {
	accepted, replayed, rejected int64
	last                         *hookRejection
}

type hookRejection struct {
	At      time.Time `json:"at"`
	Message string    `json:"message"`
}

func newInbound(path string) (*inbound, error) {
	in := &inbound{counts: map[string]*hookCounts{}}
	if path == "" {
		return in, nil
	}
	var err error
	in.hooks, err = hooks.Open(path)
	return in, err
}

func (in *inbound) all() hooks.Set {
	if in.hooks == nil {
		return nil
	}
	return in.hooks.Get()
}

// count notes what became of a request. A request that failed here, and that its sender tries again, does not count.
func (in *inbound) count(hook *hooks.Hook, replayed bool, err error) {
	result := telemetry.HookAccepted
	var refused *apierror.Error
	switch {
	case errors.As(err, &refused) && refused.Status() < http.StatusInternalServerError:
		result = telemetry.HookRejected
	case err != nil:
		return
	case replayed:
		result = telemetry.HookReplayed
	}
	telemetry.HookRequest(hook.Name, result)
	in.mu.Lock()
	defer in.mu.Unlock()
	counts := in.counts[hook.Name]
	if counts == nil {
		counts = &hookCounts{}
		in.counts[hook.Name] = counts
	}
	switch result {
	case telemetry.HookRejected:
		counts.rejected++
		counts.last = &hookRejection{At: time.Now().UTC(), Message: refused.Message}
	case telemetry.HookReplayed:
		counts.replayed++
	default:
		counts.accepted++
	}
}

// receiveHook is POST /hooks/{name}. The signature stands for the key: no row is read before it has been verified.
func (f *Function) receiveHook(c *gin.Context) error {
	hook := f.inbound.all()[c.Param("name")]
	if hook == nil {
		return apierror.New(apierror.NotFound, "there is no hook with this name")
	}
	if err := edge.RequireJSON(c); err != nil {
		return err
	}
	body, release, err := f.limits.ReadUnknownSender(c, jobspec.MaxJobBytes)
	if err != nil {
		return err
	}
	defer release()
	id, wrong := hook.Verify(c.Request.Header, body, time.Now())
	release()
	if wrong != nil {
		err := apierror.New(apierror.Unauthorized, "%s", wrong)
		f.inbound.count(hook, false, err)
		return f.limits.CountGuess(c, err)
	}
	p := access.Principal{
		Owner: hook.Owner, Everyone: f.gate == nil, Actor: "hook:" + hook.Name, Roles: []access.Role{access.Submit},
	}
	c.Request = c.Request.WithContext(access.With(c.Request.Context(), p))
	if err := f.limits.AllowRequest(c); err != nil {
		return err
	}
	if err := edge.LoadOf(c).Take(c, int64(len(body))); err != nil {
		return err
	}
	if contentType, answer := hook.Greeting(c.Request.Header, body); answer != nil {
		c.Data(http.StatusOK, contentType, answer)
		return nil
	}
	return f.auditing(c, p, func(c *gin.Context) error {
		job, err := f.submitHooked(c, hook, body, id)
		f.inbound.count(hook, job.Replayed, err)
		if err != nil {
			return err
		}
		c.JSON(acceptedStatus(c, job), acceptedBody{JobID: job.JobID, TraceID: job.TraceID, Status: job.Status()})
		return nil
	})
}

// submitHooked makes a job of a verified request. A message whose content has changed since its first time is still
// that message: Stripe counts its tries in the event.
func (f *Function) submitHooked(c *gin.Context, hook *hooks.Hook, body []byte, id string) (jobstore.Accepted, error) {
	raw, err := hook.Request(c.Request.Header, body, id)
	if err != nil {
		return jobstore.Accepted{}, apierror.New(apierror.InvalidJobRequest, "%s", err)
	}
	by := f.asker(c)
	by.whose = apidb.OwnerOf(hook.Owner)
	job, err := f.decode(raw, by)
	if err != nil {
		return jobstore.Accepted{}, err
	}
	accepted, err := f.accept(c, []jobstore.NewJob{job})
	if err != nil {
		return jobstore.Accepted{}, err
	}
	first := accepted[0]
	if first.Conflict {
		first.Conflict, first.Replayed = false, true
	}
	return first, refusal(first)
}

type hooksBody struct {
	Hooks []hookBody `json:"hooks"`
}

type hookBody struct {
	Name      string  `json:"name"`
	OwnerID   *string `json:"ownerId"`
	Signature string  `json:"signature"`
	JobType   *string `json:"jobType"` // null: each request decides

	Accepted      int64          `json:"accepted"`
	Replayed      int64          `json:"replayed"`
	Rejected      int64          `json:"rejected"`
	LastRejection *hookRejection `json:"lastRejection"`
}

// listHooks is GET /api/hooks: the hooks of the asking owner, with what this gateway has counted since it started.
func (f *Function) listHooks(c *gin.Context) error {
	all := f.inbound.all()
	body := hooksBody{Hooks: []hookBody{}}
	p, sees := access.Of(c.Request.Context()), edge.IsInstallation(c)
	f.inbound.mu.Lock()
	defer f.inbound.mu.Unlock()
	for _, name := range slices.Sorted(maps.Keys(all)) {
		hook := all[name]
		if !sees && hook.Owner != p.Owner {
			continue
		}
		shown := hookBody{
			Name: name, OwnerID: jobview.Given(hook.Owner), Signature: hook.Signature, JobType: jobview.Given(hook.JobType()),
		}
		if counts := f.inbound.counts[name]; counts != nil {
			shown.Accepted, shown.Replayed, shown.Rejected = counts.accepted, counts.replayed, counts.rejected
			shown.LastRejection = counts.last
		}
		body.Hooks = append(body.Hooks, shown)
	}
	c.JSON(http.StatusOK, body)
	return nil
}
