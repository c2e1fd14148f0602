// Package pullworkers forwards requests of pull workers to the instances of the function pull.
package pullworkers

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/google/uuid"

	"github.com/jobweaver/jobweaver/functions/gateway/access"
	"github.com/jobweaver/jobweaver/functions/gateway/edge"
	"github.com/jobweaver/jobweaver/shared/apibody"
	"github.com/jobweaver/jobweaver/shared/apidb/jobstore"
	"github.com/jobweaver/jobweaver/shared/apierror"
	"github.com/jobweaver/jobweaver/shared/pullwire"
)

const (
	leastWait  = 200 * time.Millisecond // for an instance to claim the attempts that it hands out
	shortWait  = 10 * time.Second       // a shorter wait is kept to the millisecond
	answerTime = 10 * time.Second       // beyond the wait of a claim
	storeTime  = time.Second            // for the api database, without which pull workers continue

	// mostAnswered is about the most bytes of attempts in an answer of pull, whose payloads have up to 4 MiB.
	mostAnswered = 5 << 20
)

// API has the endpoints of pull workers.
type API struct {
	pull  *Instances
	store *jobstore.Store
	auth  *edge.Authenticator
}

// New makes the endpoints.
func New(pull *Instances, store *jobstore.Store, auth *edge.Authenticator) *API {
	return &API{pull: pull, store: store, auth: auth}
}

// Close closes the idle connections to the instances.
func (a *API) Close() { a.pull.close() }

// Claim is POST /api/workers/claim.
func (a *API) Claim(c *gin.Context) error {
	claim, err := edge.ReadAs(c, apibody.MaxClaimBytes, apibody.DecodeWorkClaim)
	if err != nil {
		return err
	}
	if err := covers(c, &claim); err != nil {
		return err
	}
	release, ok := a.pull.claiming.Take(edge.CallerOf(c))
	if !ok {
		return edge.SlowDown("too many claims of this owner are held at once", time.Second)
	}
	defer release()
	if err := edge.LoadOf(c).Hold(); err != nil {
		return err
	}
	claim.Wait = max(endOnSecond(time.Now(), claim.Wait), leastWait)
	ctx, cancel := context.WithTimeout(c.Request.Context(), claim.Wait+answerTime)
	defer cancel()
	answer, err := a.claim(ctx, c, pullwire.Claim{Caller: worksFor(c), WorkClaim: claim})
	if err != nil {
		return err
	}
	if answer == nil {
		c.Status(http.StatusNoContent)
		return nil
	}
	if err := a.auth.Recheck(c, access.Work); err != nil {
		return err // the attempts are lost after a lease, and run again
	}
	a.addTags(ctx, answer.Attempts)
	edge.LoadOf(c).Drop() // the answer counts from now on
	return edge.Answer(c, http.StatusOK, answer, pullwire.Unescaped)
}

// endOnSecond shortens a long wait by less than a second, so that it ends on a whole second of the clock. The claims of
// many idle pull workers then end and are renewed in groups, and a group wakes up the cores as often as a single claim:
// for a thousand pull workers that saves more than half of the processor time.
func endOnSecond(now time.Time, wait time.Duration) time.Duration {
	if wait < shortWait {
		return wait
	}
	return now.Add(wait).Truncate(time.Second).Sub(now)
}

// addTags adds the tags, which the api database has and pull does not. Without that database the attempts are handed
// out anyway: if they were refused, they would be lost, and in the end their jobs would fail.
func (a *API) addTags(ctx context.Context, attempts []pullwire.Attempt) {
	ctx, cancel := context.WithTimeout(ctx, storeTime)
	defer cancel()
	ids := make([]uuid.UUID, len(attempts))
	for i := range attempts {
		ids[i], _ = uuid.Parse(attempts[i].JobID) // pull has written it
	}
	tags, err := a.store.TagsOf(ctx, ids)
	if err != nil {
		a.pull.trouble.Note(ctx, err)
		return
	}
	for i := range attempts {
		if attempts[i].Tags = tags[ids[i]]; attempts[i].Tags == nil {
			attempts[i].Tags = []string{}
		}
	}
}

// worksFor returns the owner whose attempts the request may claim; with a key of the installation, those of all owners.
func worksFor(c *gin.Context) pullwire.Caller {
	p := access.Of(c.Request.Context())
	if p.Owner == "" {
		return pullwire.Caller{Everyone: true}
	}
	return pullwire.Caller{Owner: p.Owner}
}

// covers refuses a claim of job types or queues that the key does not cover. A claim without queues gets those of the
// key.
func covers(c *gin.Context, claim *apibody.WorkClaim) error {
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

// claim claims attempts from the instances; nil: there were none in time.
func (a *API) claim(ctx context.Context, c *gin.Context, asked pullwire.Claim) (*pullwire.Attempts, error) {
	all, err := a.pull.instances(ctx)
	if err != nil {
		return nil, err
	}
	if len(all) == 1 {
		return a.claimAt(ctx, c, all[0], asked)
	}
	// An instance that hands out an attempt counts it as running, so only one instance may do so. The others are only
	// asked whether they have an attempt.
	deadline := time.Now().Add(asked.Wait)
	for {
		peek := asked
		peek.Peek, peek.Wait = true, time.Until(deadline)
		if peek.Wait <= 0 {
			return nil, nil
		}
		in, err := a.firstReady(ctx, all, peek)
		if in == nil || err != nil {
			return nil, err
		}
		now := asked
		now.Wait = leastWait
		if answer, err := a.claimAt(ctx, c, in, now); err == nil && answer != nil {
			return answer, nil
		}
	}
}

// firstReady waits for the first instance that has an attempt; nil: none had one in time.
func (a *API) firstReady(ctx context.Context, all []*instance, peek pullwire.Claim) (*instance, error) {
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
			res, err := a.pull.send(ctx, in, pullwire.ClaimPath, withInstance(peek, in))
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
		got := <-answers
		switch {
		case got.ready:
			return got.in, nil
		case got.err != nil:
			failed, err = failed+1, got.err
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

// claimAt claims attempts from an instance. The attempts are handed out as soon as the instance answers, so it waits
// until there is memory for them.
func (a *API) claimAt(
	ctx context.Context, c *gin.Context, in *instance, asked pullwire.Claim,
) (*pullwire.Attempts, error) {
	res, err := a.pull.send(ctx, in, pullwire.ClaimPath, withInstance(asked, in))
	if err != nil {
		return nil, err
	}
	defer func() { _ = res.Body.Close() }()
	if res.StatusCode != http.StatusOK {
		return nil, nil
	}
	body, err := edge.ReadAll(ctx, c, res.Body, mostAnswered)
	if err != nil {
		return nil, err
	}
	var got pullwire.Attempts
	if err := json.Unmarshal(body, &got); err != nil {
		return nil, errNoPull
	}
	wrong := offBy(time.Now(), res.Header.Get("Date"))
	for i := range got.Attempts {
		got.Attempts[i].Deadline = got.Attempts[i].Deadline.Add(wrong)
	}
	return &got, nil
}

// offBy returns how far our clock is ahead of that of the instance, which has written deadlines by its own: a pull
// worker knows only our clock, by which the attempts would end at once, or never. A Date has whole seconds.
func offBy(now time.Time, date string) time.Duration {
	const same = 2 * time.Second
	theirs, err := http.ParseTime(date)
	if err != nil || now.Sub(theirs).Abs() <= same {
		return 0
	}
	return now.Sub(theirs)
}
