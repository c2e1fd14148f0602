package pullworkers

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/google/uuid"

	"github.com/jobweaver/jobweaver/functions/gateway/edge"
	"github.com/jobweaver/jobweaver/shared/apibody"
	"github.com/jobweaver/jobweaver/shared/apidb"
	"github.com/jobweaver/jobweaver/shared/apierror"
	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/pullwire"
)

// resultBytes is about what the result of an attempt takes in an answer.
const resultBytes = 256

// Heartbeat is POST /api/workers/heartbeat.
func (a *API) Heartbeat(c *gin.Context) error {
	heartbeat, err := edge.ReadAs(c, apibody.MaxHeartbeatBytes, apibody.DecodeWorkHeartbeat)
	if err != nil {
		return err
	}
	ctx, cancel := edge.WithPatience(c)
	defer cancel()
	tokenOf := func(i int) string { return heartbeat.Attempts[i].Token }
	at, unknown, err := a.byInstance(ctx, len(heartbeat.Attempts), tokenOf)
	if err != nil {
		return err
	}
	answer := pullwire.HeartbeatAnswer{Cancelled: []string{}, Lost: []string{}}
	for _, i := range unknown {
		answer.Lost = append(answer.Lost, heartbeat.Attempts[i].Token)
	}
	var mu sync.Mutex
	each(at, func(in *instance, own []int) {
		part := pullwire.Heartbeat{Caller: worksFor(c), WorkHeartbeat: apibody.WorkHeartbeat{Worker: heartbeat.Worker}}
		for _, i := range own {
			part.Attempts = append(part.Attempts, heartbeat.Attempts[i])
		}
		var got pullwire.HeartbeatAnswer
		sent := time.Now()
		failed := a.pull.post(ctx, in, pullwire.HeartbeatPath, part, &got)
		over := a.pull.isOver(in, sent, failed)
		mu.Lock()
		defer mu.Unlock()
		if over {
			for _, attempt := range part.Attempts {
				got.Lost = append(got.Lost, attempt.Token)
			}
		} else if failed != nil {
			err = failed
		}
		answer.Cancelled, answer.Lost = append(answer.Cancelled, got.Cancelled...), append(answer.Lost, got.Lost...)
	})
	if err != nil && len(at) == 1 {
		return err // the responses of other instances still count; attempts without a response continue
	}
	return edge.Answer(c, http.StatusOK, answer)
}

// Attempt is an attempt in the hands of the pull worker that sends the request.
type Attempt struct {
	JobID   uuid.UUID
	Attempt int
	Owner   apidb.Owner // whose attempts the worker may have
}

// AttemptOf returns the attempt of a token, and renews its lease as a heartbeat does. It is apierror.AttemptOver for
// one that is over or in other hands.
func (a *API) AttemptOf(c *gin.Context, of apibody.OfAttempt) (Attempt, error) {
	ctx, cancel := edge.WithPatience(c)
	defer cancel()
	caller := worksFor(c)
	at := Attempt{Owner: apidb.OwnerWith(caller.Owner, caller.Everyone)}
	over := apierror.New(apierror.AttemptOver, "the attempt is over, or was never this worker's")
	instance, rest, _ := strings.Cut(of.Token, ".")
	var ok bool
	if at.JobID, at.Attempt, ok = jobevent.ReadAttemptToken(rest); !ok {
		return at, over
	}
	if _, err := a.pull.instances(ctx); err != nil {
		return at, err
	}
	in := a.pull.byID(instance)
	if in == nil {
		return at, over
	}
	one := pullwire.Heartbeat{Caller: caller, WorkHeartbeat: apibody.WorkHeartbeat{
		Worker: of.Worker, Attempts: []apibody.WorkAttempt{{Token: of.Token}},
	}}
	var got pullwire.HeartbeatAnswer
	if err := a.pull.post(ctx, in, pullwire.HeartbeatPath, one, &got); err != nil {
		return at, err
	}
	if len(got.Lost) > 0 {
		return at, over
	}
	return at, nil
}

// Settle is POST /api/workers/settle.
func (a *API) Settle(c *gin.Context) error {
	settle, err := edge.ReadAs(c, apibody.MaxSettleBytes, apibody.DecodeWorkSettle)
	if err != nil {
		return err
	}
	return a.forward(c, len(settle.Results), func(i int) (string, error) {
		return settle.Results[i].Token, settle.Results[i].Wrong
	}, pullwire.SettlePath, func(own []int) any {
		part := pullwire.Settle{Caller: worksFor(c), WorkSettle: apibody.WorkSettle{Worker: settle.Worker}}
		for _, i := range own {
			part.Results = append(part.Results, settle.Results[i])
		}
		return part
	})
}

// Checkpoint is POST /api/workers/checkpoint.
func (a *API) Checkpoint(c *gin.Context) error {
	all, err := edge.ReadAs(c, apibody.MaxSettleBytes, apibody.DecodeWorkCheckpoints)
	if err != nil {
		return err
	}
	return a.forward(c, len(all.Checkpoints), func(i int) (string, error) {
		return all.Checkpoints[i].Token, all.Checkpoints[i].Wrong
	}, pullwire.CheckpointPath, func(own []int) any {
		part := pullwire.Checkpoints{Caller: worksFor(c), WorkCheckpoints: apibody.WorkCheckpoints{Worker: all.Worker}}
		for _, i := range own {
			part.Checkpoints = append(part.Checkpoints, all.Checkpoints[i])
		}
		return part
	})
}

// forward sends the n entries of a request to the instances that have their attempts, and answers with a response for
// each entry. entry returns the token of an entry and what is wrong with it, and request the request with some of them.
func (a *API) forward(
	c *gin.Context, n int, entry func(i int) (token string, wrong error), path string, request func(own []int) any,
) error {
	ctx, cancel := edge.WithPatience(c)
	defer cancel()
	token := func(i int) string {
		token, _ := entry(i)
		return token
	}
	at, unknown, err := a.byInstance(ctx, n, token)
	if err == nil {
		err = edge.LoadOf(c).Reserve(int64(n * resultBytes))
	}
	if err != nil {
		return err
	}
	answers := make([]pullwire.Answer, n)
	for _, i := range unknown {
		answers[i] = pullwire.Over(token(i), "the instance that had the attempt is gone")
	}
	each(at, func(in *instance, own []int) {
		var sent []int
		for _, i := range own {
			answers[i] = pullwire.Unavailable(token(i))
			if _, wrong := entry(i); wrong == nil {
				sent = append(sent, i)
			}
		}
		var got pullwire.Settled
		if len(sent) == 0 || a.pull.post(ctx, in, path, request(sent), &got) != nil || len(got.Results) != len(sent) {
			return
		}
		for at, i := range sent {
			answers[i] = got.Results[at]
		}
	})
	for i := range n {
		if token, wrong := entry(i); wrong != nil {
			answers[i] = pullwire.Refused(token, edge.Public(wrong))
		}
	}
	return edge.Answer(c, http.StatusOK, pullwire.Settled{Results: answers})
}

// each calls do for every instance concurrently.
func each(at map[*instance][]int, do func(*instance, []int)) {
	var all sync.WaitGroup
	for in, own := range at {
		all.Go(func() { do(in, own) })
	}
	all.Wait()
}

// byInstance groups the indices of tokens by the instances that handed them out. unknown has those without an instance.
func (a *API) byInstance(
	ctx context.Context, n int, token func(int) string,
) (at map[*instance][]int, unknown []int, err error) {
	if _, err = a.pull.instances(ctx); err != nil {
		return nil, nil, err
	}
	at = map[*instance][]int{}
	for i := range n {
		id, _, _ := strings.Cut(token(i), ".")
		if in := a.pull.byID(id); in != nil {
			at[in] = append(at[in], i)
		} else {
			unknown = append(unknown, i)
		}
	}
	return at, unknown, nil
}
