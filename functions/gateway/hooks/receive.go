package hooks

import (
	"errors"
	"net/http"
	"sync"
	"time"

	"github.com/gin-gonic/gin"

	"github.com/jobweaver/jobweaver/functions/gateway/access"
	"github.com/jobweaver/jobweaver/functions/gateway/audit"
	"github.com/jobweaver/jobweaver/functions/gateway/edge"
	"github.com/jobweaver/jobweaver/functions/gateway/submit"
	"github.com/jobweaver/jobweaver/shared/apidb"
	"github.com/jobweaver/jobweaver/shared/apidb/jobstore"
	"github.com/jobweaver/jobweaver/shared/apidb/waitstore"
	"github.com/jobweaver/jobweaver/shared/apierror"
	"github.com/jobweaver/jobweaver/shared/jobspec"
	"github.com/jobweaver/jobweaver/shared/reload"
)

// API has the endpoints of hooks: the hooks of HOOKS_FILE, with the counts of this process.
type API struct {
	submit *submit.API
	auth   *edge.Authenticator
	hooks  *reload.Files[Set] // nil: there is no file

	mu     sync.Mutex
	counts map[string]*hookCounts // by name, so that they outlive a change of the file
}

// NewAPI makes the endpoints of the hooks in a file; nil: there are none.
func NewAPI(hooks *reload.Files[Set], submit *submit.API, auth *edge.Authenticator) *API {
	return &API{hooks: hooks, submit: submit, auth: auth, counts: map[string]*hookCounts{}}
}

func (a *API) all() Set {
	if a.hooks == nil {
		return nil
	}
	return a.hooks.Get()
}

// errUnsigned is the same for an unknown name and for a wrong signature, so that no client can find out the names of
// hooks. The list of hooks has the reason.
var errUnsigned = apierror.New(apierror.Unauthorized,
	"there is no hook of this name, or no secret of it has signed the request")

// Receive is POST /hooks/{name}. The signature takes the place of an API key: no row is read before it has been
// verified.
func (a *API) Receive(c *gin.Context) error {
	hook := a.all()[c.Param("name")]
	body, release, err := a.submit.Limits.ReadUnknownSender(c, jobspec.MaxJobBytes)
	if err != nil {
		a.count(hook, false, err)
		return err
	}
	defer release()
	id, wrong := hook.Verify(c.Request.Header, body, time.Now())
	release()
	if wrong != nil {
		a.count(hook, false, apierror.New(apierror.Unauthorized, "%s", wrong))
		return a.submit.Limits.CountGuess(c, errUnsigned)
	}
	p := access.Principal{
		Owner: hook.Owner, Anonymous: a.auth.Gate == nil, Actor: "hook:" + hook.Name, Roles: []access.Role{access.Submit},
	}
	c.Request = c.Request.WithContext(access.With(c.Request.Context(), p))
	if err := a.admit(c, len(body)); err != nil {
		a.count(hook, false, err)
		return err
	}
	if contentType, answer := hook.Greeting(c.Request.Header, body); answer != nil {
		edge.AnswerText(c, http.StatusOK, contentType, answer)
		return nil
	}
	if hook.event != nil {
		receipt, err := a.keepEvent(c, hook, body, id)
		a.count(hook, receipt.Replayed, err)
		if err != nil {
			return err
		}
		return submit.AnswerKept(c, readable(id), receipt)
	}
	job, err := a.submitJob(c, hook, body, id)
	a.count(hook, job.Existed(), err)
	if err != nil {
		return err
	}
	return edge.Answer(c, submit.AcceptedStatus(c, job), submit.NewBody(job))
}

// admit counts a verified request, and its body.
func (a *API) admit(c *gin.Context, size int) error {
	if err := a.submit.Limits.AllowRequest(c); err != nil {
		return err
	}
	return edge.LoadOf(c).Take(int64(size))
}

// readJSON returns the JSON of a body, which may be a form.
func readJSON(c *gin.Context, body []byte) ([]byte, error) {
	media, err := edge.MediaType(c)
	switch {
	case err != nil:
		return nil, err
	case media == formType:
		return ofForm(body)
	}
	return body, edge.RequireJSON(c)
}

// keepEvent makes an event of a verified request.
func (a *API) keepEvent(c *gin.Context, hook *Hook, body []byte, id string) (waitstore.Receipt, error) {
	body, err := readJSON(c, body)
	if err != nil {
		return waitstore.Receipt{}, err
	}
	event, attributes, err := hook.Event(c.Request.Header, body, id)
	if err != nil {
		return waitstore.Receipt{}, err
	}
	if event, err = a.submit.Kept(event, attributes); err != nil {
		return waitstore.Receipt{}, err
	}
	receipts, err := a.submit.Keep(c, []waitstore.Event{event})
	if err != nil {
		return waitstore.Receipt{}, err
	}
	return receipts[0], nil
}

// submitJob makes a job of a verified request. A message whose content has changed since it was first sent is still the
// same message: Stripe counts its tries in the event.
func (a *API) submitJob(c *gin.Context, hook *Hook, body []byte, id string) (jobstore.Accepted, error) {
	body, err := readJSON(c, body)
	if err != nil {
		return jobstore.Accepted{}, err
	}
	raw, err := hook.Request(c.Request.Header, body, id)
	if refused := (*apierror.Error)(nil); err != nil && !errors.As(err, &refused) {
		err = apierror.New(apierror.InvalidJobRequest, "%s", err)
	}
	if err != nil {
		return jobstore.Accepted{}, err
	}
	by := a.submit.Requester(c)
	by.Owner = apidb.OwnerOf(hook.Owner)
	job, err := a.submit.Decode(raw, by)
	if err != nil {
		return jobstore.Accepted{}, err
	}
	accepted, err := a.submit.Accept(c, audit.Entry(c), []jobstore.NewJob{job})
	if err != nil {
		return jobstore.Accepted{}, err
	}
	first := accepted[0]
	if first.Conflict {
		first.Conflict, first.Replayed = false, true
	}
	return first, submit.Refusal(first)
}
