package queues

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/google/uuid"

	"github.com/jobweaver/jobweaver/functions/gateway/audit"
	"github.com/jobweaver/jobweaver/functions/gateway/changes"
	"github.com/jobweaver/jobweaver/functions/gateway/edge"
	"github.com/jobweaver/jobweaver/functions/gateway/publishbuffer"
	"github.com/jobweaver/jobweaver/shared/apibody"
	"github.com/jobweaver/jobweaver/shared/apidb"
	"github.com/jobweaver/jobweaver/shared/apidb/controlstore"
	"github.com/jobweaver/jobweaver/shared/apidb/queuestore"
	"github.com/jobweaver/jobweaver/shared/apidb/statstore"
	"github.com/jobweaver/jobweaver/shared/apidb/workerstore"
	"github.com/jobweaver/jobweaver/shared/apierror"
	"github.com/jobweaver/jobweaver/shared/apievent"
	"github.com/jobweaver/jobweaver/shared/funchost"
	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/jobspec"
	"github.com/jobweaver/jobweaver/shared/jobstate"
	"github.com/jobweaver/jobweaver/shared/jobview"
	"github.com/jobweaver/jobweaver/shared/telemetry"
)

// topicPatience bounds a call to the broker: the transaction that waits for it would be ended after 3 s.
const topicPatience = 2500 * time.Millisecond

// The origins of a queue.
const (
	originSetting = "setting"
	originCreated = "created"
)

type queueBody struct {
	Queue       string           `json:"queue"`
	Origin      string           `json:"origin"`
	State       queuestore.State `json:"state"`
	Workers     *string          `json:"workers"` // null: PULL_QUEUES of the workers decides
	LiveWorkers int              `json:"liveWorkers"`
	Waiting     int64            `json:"waiting"`
	Running     int64            `json:"running"`
	Paused      bool             `json:"paused"`
	CreatedAt   *time.Time       `json:"createdAt"`
	CreatedBy   *string          `json:"createdBy"`
	RemovingAt  *time.Time       `json:"removingAt"`
}

type queuesBody struct {
	Queues []queueBody `json:"queues"`
}

// API has the endpoints of queues.
type API struct {
	*Installation
	Controls *controlstore.Store
	Workers  *workerstore.Store
	Stats    *statstore.Store
	Topics   funchost.QueueTopics
	Hub      *changes.Hub
	Outgoing *publishbuffer.Buffer

	ending          telemetry.Trouble
	lookedForTopics time.Time
}

// List is GET /api/queues.
func (a *API) List(c *gin.Context) error {
	ctx, cancel := edge.WithPatience(c)
	defer cancel()
	names, err := a.Names(ctx)
	if err != nil {
		return err
	}
	found, err := a.describe(ctx, c, names)
	if err != nil {
		return err
	}
	return edge.Answer(c, http.StatusOK, queuesBody{found})
}

// Get is GET /api/queues/{queue}.
func (a *API) Get(c *gin.Context) error {
	name, err := nameIn(c)
	if err != nil {
		return err
	}
	ctx, cancel := edge.WithPatience(c)
	defer cancel()
	if is, err := a.Has(ctx, name); err != nil {
		return err
	} else if !is {
		return queuestore.ErrNoQueue
	}
	return a.answer(ctx, c, http.StatusOK, name)
}

// nameIn returns the name in the path.
func nameIn(c *gin.Context) (string, error) {
	name := c.Param("queue")
	if wrong := jobspec.WrongQueue(name); wrong != "" {
		return "", edge.Invalid("queue", wrong)
	}
	return name, nil
}

// answer answers with a queue.
func (a *API) answer(ctx context.Context, c *gin.Context, status int, name string) error {
	found, err := a.describe(ctx, c, []string{name})
	if err != nil {
		return err
	}
	return edge.Answer(c, status, found[0])
}

// describe returns the queues as the owner of a request sees them: the numbers are those of its jobs.
func (a *API) describe(ctx context.Context, c *gin.Context, names []string) ([]queueBody, error) {
	known, err := a.Store.Known(ctx, queuestore.UnknownAge)
	if err != nil {
		return nil, err
	}
	stats, err := a.Stats.Get(ctx, edge.OwnerOf(c), "", "")
	if err != nil {
		return nil, err
	}
	live, err := a.liveWorkers(ctx)
	if err != nil {
		return nil, err
	}
	bodies := make([]queueBody, len(names))
	for i, name := range names {
		jobs := stats.Queues[name]
		body := queueBody{
			Queue: name, Origin: originSetting, State: queuestore.Active, LiveWorkers: live[name],
			Waiting: jobs[jobstate.Scheduled] + jobs[jobstate.Pending] + jobs[jobstate.Retrying],
			Running: jobs[jobstate.Queued] + jobs[jobstate.Running] + jobs[jobstate.Waiting],
		}
		if queue, is := known[name]; is && !slices.Contains(a.Fixed, name) {
			body.Origin, body.State, body.Workers = originCreated, queue.State, &queue.Workers
			body.CreatedAt, body.RemovingAt = jobview.UTC(&queue.CreatedAt), jobview.UTC(queue.RemovingAt)
			if edge.IsInstallation(c) {
				body.CreatedBy = &queue.CreatedBy
			}
		}
		held, err := a.Controls.Holding(ctx, name, "", "", "")
		if err != nil {
			return nil, err
		}
		body.Paused = slices.ContainsFunc(held, func(control controlstore.Control) bool { return control.Paused })
		bodies[i] = body
	}
	return bodies, nil
}

// liveWorkers counts the live workers of each queue.
func (a *API) liveWorkers(ctx context.Context) (map[string]int, error) {
	workers, err := a.Workers.List(ctx)
	live := map[string]int{}
	for i := range workers {
		if w := &workers[i]; w.Live && !w.Stopping {
			for _, queue := range w.Queues {
				live[queue]++
			}
		}
	}
	return live, err
}

// Put is PUT /api/queues/{queue}.
func (a *API) Put(c *gin.Context) error {
	name, err := nameIn(c)
	if err != nil {
		return err
	}
	var body []byte
	if c.Request.ContentLength != 0 {
		if body, err = edge.ReadJSON(c, apibody.MaxControlBytes); err != nil {
			return err
		}
	}
	workers, err := apibody.DecodeQueue(body)
	if err != nil {
		return err
	}
	if slices.Contains(a.Fixed, name) {
		return apierror.New(apierror.InvalidStateTransition, "%s is a queue of the setting QUEUES", name)
	}
	entry, err := audit.EntryOf(c, "", body)
	if err != nil {
		return err
	}
	ctx, cancel := edge.WithPatience(c)
	defer cancel()
	makeTopic := func(ctx context.Context) error { return a.onBroker(ctx, name, a.Topics.Create) }
	queue, created, control, err := a.Store.Put(ctx, entry, name, workers, audit.Actor(c), makeTopic)
	if err != nil {
		return err
	}
	if control != nil {
		a.publish(*control)
	}
	if !created {
		return a.answer(ctx, c, http.StatusOK, queue.Name)
	}
	edge.Locate(c, "/api/queues/"+queue.Name)
	return a.answer(ctx, c, http.StatusCreated, queue.Name)
}

// onBroker creates or deletes the topic of a queue.
func (a *API) onBroker(ctx context.Context, name string, do func(context.Context, string) error) error {
	ctx, cancel := context.WithTimeout(ctx, topicPatience)
	defer cancel()
	if err := do(ctx, name); err != nil {
		away := apierror.New(apierror.Unavailable, "the topic of the queue cannot be made or deleted: try again")
		return fmt.Errorf("%w: %w", err, away)
	}
	return nil
}

// publish publishes controls, and notifies other gateways.
func (a *API) publish(controls ...controlstore.Control) {
	a.Hub.Announce(apidb.ChangeControls, uuid.Nil)
	for _, control := range controls {
		if e, err := apievent.Control(control); err == nil { // else projection publishes it
			a.Outgoing.Add([]jobevent.Item{e})
		}
	}
}

// Delete is DELETE /api/queues/{queue}: it begins the removal.
func (a *API) Delete(c *gin.Context) error {
	q := edge.NewQuery(c)
	drain := q.Boolean("drain")
	if err := q.Close("drain"); err != nil {
		return err
	}
	name, err := nameIn(c)
	if err != nil {
		return err
	}
	if slices.Contains(a.Fixed, name) {
		return apierror.New(apierror.InvalidStateTransition,
			"%s is a queue of the setting QUEUES, which alone removes it", name)
	}
	ctx, cancel := edge.WithPatience(c)
	defer cancel()
	_, err = a.Store.Remove(ctx, audit.Entry(c), name, func(uses queuestore.Uses) error {
		return refusal(uses, drain != nil && *drain)
	})
	if err != nil {
		return err
	}
	a.Hub.Announce(apidb.ChangeControls, uuid.Nil)
	return a.answer(ctx, c, http.StatusAccepted, name)
}

// refusal returns why a queue is not removed.
func refusal(uses queuestore.Uses, drain bool) error {
	var why []string
	add := func(n int64, one, many string) {
		switch {
		case n == 1:
			why = append(why, "1 "+one)
		case n > 1:
			why = append(why, fmt.Sprintf("%d %s", n, many))
		}
	}
	add(uses.Schedules, "schedule names it", "schedules name it")
	add(uses.Batches, "batch that has not ended makes a job in it", "batches that have not ended make jobs in it")
	if !drain {
		add(uses.Jobs, "job in it has not ended", "jobs in it have not ended")
	}
	if len(why) == 0 {
		return nil
	}
	message := "the queue is not removed: " + strings.Join(why, ", ")
	if !drain && uses.Jobs > 0 {
		message += "; with ?drain=true it takes no new jobs, and is removed when these have ended"
	}
	return apierror.New(apierror.InvalidStateTransition, "%s", message)
}
