package gateway

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/google/uuid"

	"github.com/jobweaver/jobweaver/functions/gateway/access"
	"github.com/jobweaver/jobweaver/functions/gateway/edge"
	"github.com/jobweaver/jobweaver/shared/apierror"
	"github.com/jobweaver/jobweaver/shared/jobspec"
	"github.com/jobweaver/jobweaver/shared/pullwire"
)

const (
	claimPath = "/api/workers/claim"

	leastWait  = 200 * time.Millisecond // for an instance to claim what it hands out
	answerTime = 10 * time.Second       // beyond a claim's wait
	tagsTime   = time.Second
)

// claimWork is POST /api/workers/claim.
func (f *Function) claimWork(c *gin.Context) error {
	body, err := edge.ReadJSON(c, jobspec.MaxClaimBytes)
	if err != nil {
		return err
	}
	claim, err := jobspec.DecodeWorkClaim(body)
	if err != nil {
		return err
	}
	if err := covers(c, &claim); err != nil {
		return err
	}
	release, ok := f.pull.held.Hold(edge.CallerOf(c))
	if !ok {
		return edge.SlowDown("too many claims of this owner are held at once", time.Second)
	}
	defer release()
	claim.Wait = max(claim.Wait, leastWait)
	ctx, cancel := context.WithTimeout(c.Request.Context(), claim.Wait+answerTime)
	defer cancel()
	answer, err := f.pull.claim(ctx, pullwire.Claim{Caller: worksFor(c), WorkClaim: claim})
	if err != nil {
		return err
	}
	if answer == nil {
		c.Status(http.StatusNoContent)
		return nil
	}
	if err := f.still(c, access.Work); err != nil {
		return err // the attempts are lost after a lease, and run again
	}
	f.addTags(ctx, answer.Attempts)
	c.Header("Content-Type", jsonType)
	c.Status(http.StatusOK)
	return json.NewEncoder(c.Writer).Encode(answer)
}

// addTags fills in what the api database knows and pull does not. Without that database the attempts go out all the
// same: refused, they would be lost, and at last their jobs would fail.
func (f *Function) addTags(ctx context.Context, attempts []pullwire.Attempt) {
	ctx, cancel := context.WithTimeout(ctx, tagsTime)
	defer cancel()
	ids := make([]uuid.UUID, len(attempts))
	for i := range attempts {
		ids[i] = attempts[i].JobID
	}
	tags, err := f.store.jobs.TagsOf(ctx, ids)
	if err != nil {
		f.pull.trouble.Note(ctx, err)
		return
	}
	for i := range attempts {
		if attempts[i].Tags = tags[ids[i]]; attempts[i].Tags == nil {
			attempts[i].Tags = []string{}
		}
	}
}

// worksFor is the owner of whose jobs the request may have attempts: with a key of the installation, all owners.
func worksFor(c *gin.Context) pullwire.Caller {
	p := access.Of(c.Request.Context())
	if p.Everyone || p.Owner == "" {
		return pullwire.Caller{Everyone: true}
	}
	return pullwire.Caller{Owner: p.Owner}
}

// covers refuses a claim of what the key is not for. One that names no queues asks for those of the key.
func covers(c *gin.Context, claim *jobspec.WorkClaim) error {
	p := access.Of(c.Request.Context())
	if len(claim.Queues) == 0 {
		claim.Queues = p.Queues
	}
	for _, part := range []struct {
		what           string
		asked, allowed []string
	}{{"job type", claim.Types, p.Types}, {"queue", claim.Queues, p.Queues}} {
		for _, name := range part.asked {
			if len(part.allowed) > 0 && !slices.Contains(part.allowed, name) {
				return apierror.New(apierror.Forbidden, "the API key does not cover the %s %s", part.what, name)
			}
		}
	}
	return nil
}

// beatWork is POST /api/workers/beat.
func (f *Function) beatWork(c *gin.Context) error {
	body, err := edge.ReadJSON(c, jobspec.MaxBeatBytes)
	if err != nil {
		return err
	}
	beat, err := jobspec.DecodeWorkBeat(body)
	if err != nil {
		return err
	}
	ctx, cancel := edge.WithPatience(c)
	defer cancel()
	at, unknown, err := f.pull.byInstance(ctx, len(beat.Attempts), func(i int) string { return beat.Attempts[i].Token })
	if err != nil {
		return err
	}
	answer := pullwire.Beaten{Cancelled: []string{}, Lost: []string{}}
	for _, i := range unknown {
		answer.Lost = append(answer.Lost, beat.Attempts[i].Token)
	}
	var mu sync.Mutex
	each(at, func(in *instance, own []int) {
		part := pullwire.Beat{Caller: worksFor(c), WorkBeat: jobspec.WorkBeat{Worker: beat.Worker}}
		for _, i := range own {
			part.Attempts = append(part.Attempts, beat.Attempts[i])
		}
		var got pullwire.Beaten
		sent := time.Now()
		failed := f.pull.post(ctx, in, pullwire.BeatPath, part, &got)
		over := f.pull.isOver(in, sent, failed)
		mu.Lock()
		defer mu.Unlock()
		if over {
			for _, a := range part.Attempts {
				got.Lost = append(got.Lost, a.Token)
			}
		} else if failed != nil {
			err = failed
		}
		answer.Cancelled, answer.Lost = append(answer.Cancelled, got.Cancelled...), append(answer.Lost, got.Lost...)
	})
	if err != nil && len(at) == 1 {
		return err // of several instances the others' answers count; what is not named goes on
	}
	c.JSON(http.StatusOK, answer)
	return nil
}

// settleWork is POST /api/workers/settle.
func (f *Function) settleWork(c *gin.Context) error {
	body, err := edge.ReadJSON(c, jobspec.MaxSettleBytes)
	if err != nil {
		return err
	}
	settle, err := jobspec.DecodeWorkSettle(body)
	if err != nil {
		return err
	}
	ctx, cancel := edge.WithPatience(c)
	defer cancel()
	at, unknown, err := f.pull.byInstance(ctx, len(settle.Results), func(i int) string { return settle.Results[i].Token })
	if err != nil {
		return err
	}
	answers := make([]pullwire.Answer, len(settle.Results))
	for _, i := range unknown {
		answers[i] = pullwire.Over(settle.Results[i].Token, "the instance that had the attempt is gone")
	}
	each(at, func(in *instance, own []int) {
		part := pullwire.Settle{Caller: worksFor(c), WorkSettle: jobspec.WorkSettle{Worker: settle.Worker}}
		var sent []int
		for _, i := range own {
			answers[i] = pullwire.Unavailable(settle.Results[i].Token)
			if settle.Results[i].Wrong == nil {
				part.Results, sent = append(part.Results, settle.Results[i]), append(sent, i)
			}
		}
		var got pullwire.Settled
		if len(sent) == 0 || f.pull.post(ctx, in, pullwire.SettlePath, part, &got) != nil || len(got.Results) != len(sent) {
			return
		}
		for n, i := range sent {
			answers[i] = got.Results[n]
		}
	})
	for i, result := range settle.Results {
		if result.Wrong != nil {
			answers[i] = pullwire.Refused(result.Token, edge.Public(result.Wrong))
		}
	}
	c.JSON(http.StatusOK, pullwire.Settled{Results: answers})
	return nil
}

// each calls do for every instance, side by side.
func each(at map[*instance][]int, do func(*instance, []int)) {
	var all sync.WaitGroup
	for in, own := range at {
		all.Go(func() { do(in, own) })
	}
	all.Wait()
}

// byInstance sorts the indices of tokens by the instances that handed them out; unknown: there is none.
func (p *pullers) byInstance(
	ctx context.Context, n int, token func(int) string,
) (at map[*instance][]int, unknown []int, err error) {
	if _, err = p.instances(ctx); err != nil {
		return nil, nil, err
	}
	at = map[*instance][]int{}
	for i := range n {
		id, _, _ := strings.Cut(token(i), ".")
		if in := p.byID(id); in != nil {
			at[in] = append(at[in], i)
		} else {
			unknown = append(unknown, i)
		}
	}
	return at, unknown, nil
}

// claim asks the instances for attempts; nil: none came.
func (p *pullers) claim(ctx context.Context, asked pullwire.Claim) (*pullwire.Attempts, error) {
	all, err := p.instances(ctx)
	if err != nil {
		return nil, err
	}
	if len(all) == 1 {
		return p.claimAt(ctx, all[0], asked)
	}
	// An instance that hands out an attempt counts it as running, so only one of them may answer. The others are only
	// asked whether they have one.
	deadline := time.Now().Add(asked.Wait)
	for {
		peek := asked
		peek.Peek, peek.Wait = true, time.Until(deadline)
		if peek.Wait <= 0 {
			return nil, nil
		}
		in, err := p.firstReady(ctx, all, peek)
		if in == nil || err != nil {
			return nil, err
		}
		now := asked
		now.Wait = leastWait
		if answer, err := p.claimAt(ctx, in, now); err == nil && answer != nil {
			return answer, nil
		}
	}
}

// firstReady waits for the first instance that has an attempt; nil: none had one in time.
func (p *pullers) firstReady(ctx context.Context, all []*instance, peek pullwire.Claim) (*instance, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	type answer struct {
		in    *instance
		ready bool
		err   error
	}
	answers := make(chan answer, len(all))
	for _, in := range all {
		go func() {
			res, err := p.send(ctx, in, pullwire.ClaimPath, withInstance(peek, in))
			if err != nil {
				answers <- answer{err: err}
				return
			}
			_ = res.Body.Close()
			answers <- answer{in: in, ready: res.StatusCode == http.StatusAccepted}
		}()
	}
	failed := 0
	var err error
	for range all {
		a := <-answers
		switch {
		case a.ready:
			return a.in, nil
		case a.err != nil:
			failed, err = failed+1, a.err
		}
	}
	if failed == len(all) {
		return nil, err
	}
	return nil, nil
}

func withInstance(claim pullwire.Claim, in *instance) pullwire.Claim {
	claim.Instance = in.id
	return claim
}

func (p *pullers) claimAt(ctx context.Context, in *instance, asked pullwire.Claim) (*pullwire.Attempts, error) {
	res, err := p.send(ctx, in, pullwire.ClaimPath, withInstance(asked, in))
	if err != nil {
		return nil, err
	}
	defer func() { _ = res.Body.Close() }()
	if res.StatusCode != http.StatusOK {
		return nil, nil
	}
	var got pullwire.Attempts
	if err := json.NewDecoder(res.Body).Decode(&got); err != nil {
		return nil, errNoPull
	}
	return &got, nil
}

// post sends a request and reads its answer.
func (p *pullers) post(ctx context.Context, in *instance, path string, body, answer any) error {
	res, err := p.send(ctx, in, path, body)
	if err != nil {
		return err
	}
	defer func() { _ = res.Body.Close() }()
	if err := json.NewDecoder(res.Body).Decode(answer); err != nil {
		return errNoPull
	}
	return nil
}

var errNoPull = apierror.New(apierror.Unavailable, "the function pull cannot be reached; send the request again")

// send returns answers of 2xx only.
func (p *pullers) send(ctx context.Context, in *instance, path string, body any) (*http.Response, error) {
	data, err := json.Marshal(body)
	if err != nil {
		return nil, fmt.Errorf("write request to pull: %w", err)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, in.url+path, bytes.NewReader(data))
	if err != nil {
		return nil, fmt.Errorf("make request to pull: %w", err)
	}
	req.Header.Set("Content-Type", jsonType)
	req.Header.Set(pullwire.SecretHeader, p.secret)
	res, err := in.client.Do(req)
	if err != nil {
		switch gone := ctx.Err(); {
		case errors.Is(gone, context.Canceled): // the pull worker went away: nothing is wrong with pull
			return nil, fmt.Errorf("ask pull: %w", gone)
		case gone == nil:
			p.trouble.Note(ctx, err, "instance", in.address)
		}
		return nil, errNoPull
	}
	if res.StatusCode/100 != 2 {
		_ = res.Body.Close()
		if res.StatusCode != http.StatusServiceUnavailable { // it stops
			p.trouble.Note(ctx, fmt.Errorf("answered %s", res.Status), "instance", in.address)
		}
		return nil, errNoPull
	}
	p.trouble.Note(ctx, nil)
	return res, nil
}
