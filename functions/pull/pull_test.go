package pull

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jobweaver/jobweaver/shared/apibody"
	"github.com/jobweaver/jobweaver/shared/apierror"
	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/pullwire"
	"github.com/jobweaver/jobweaver/shared/testwait"
	"github.com/jobweaver/jobweaver/shared/webhook"
)

func TestAnAttemptIsClaimedKeptAndSettled(t *testing.T) {
	x := newFixture(t)
	i := x.start(nil)
	run := x.run("RESIZE", "acme", func(run *jobevent.Run) { run.Event = json.RawMessage(`{"id":"1"}`) })
	a := i.one("RESIZE")
	if a.JobID != run.JobID.String() || string(a.Event) != `{"id":"1"}` || a.Attempt != 1 || string(a.Payload) != `{"n":1}` && string(a.Payload) != `{"n": 1}` ||
		a.Queue != x.queue || *a.OwnerID != "acme" || time.Until(a.Deadline) < 9*time.Minute || a.Callback == nil {
		t.Fatalf("handed out %+v", a)
	}
	keys, err := webhook.NewCallbackKeys([]string{testKey})
	if err != nil || !keys.CheckSecret(jobevent.AttemptToken(run.JobID, 1), a.Callback.Secret) {
		t.Errorf("an outside system could not call back with %+v, %v", a.Callback, err)
	}
	answer := i.heartbeatFor(everyone, apibody.WorkAttempt{
		Token: a.Token, Progress: &jobevent.Progress{Percent: 40, Message: "so far"},
		Log: []apibody.WorkLine{{Level: "warn", Text: "a line"}},
	})
	if len(answer.Cancelled)+len(answer.Lost) > 0 {
		t.Errorf("the heartbeat was answered %+v", answer)
	}
	x.until("its line is published", func(e jobevent.Item) bool {
		log, err := jobevent.DecodeAs[jobevent.AttemptLog](e, jobevent.TypeAttemptLog)
		return err == nil && log.JobID == run.JobID &&
			log.Lines[0].Text == "a line" && log.Lines[0].Level == "warn"
	})
	x.until("its progress is published", func(e jobevent.Item) bool {
		heartbeat, err := jobevent.DecodeAs[jobevent.Heartbeat](e, jobevent.TypeHeartbeat)
		return err == nil && len(heartbeat.Attempts) == 1 && heartbeat.Attempts[0].RanBy == "w" &&
			heartbeat.Attempts[0].Progress != nil && heartbeat.Attempts[0].Progress.Percent == 40 && heartbeat.JobTypes[0].Name == "RESIZE"
	})
	result := apibody.WorkResult{Token: a.Token, Status: apibody.WorkCompleted, Output: json.RawMessage(`{"ok":true}`)}
	i.wantSettled(http.StatusOK, result)
	if kind, _ := x.outcome(run); kind != "completed" {
		t.Errorf("it is %s", kind)
	}
	i.wantSettled(http.StatusOK, result) // its answer may have been lost
	result.Status, result.Output = apibody.WorkFailed, nil
	i.wantSettled(http.StatusConflict, result)
}

func TestEachStatusEndsAnAttemptItsWay(t *testing.T) {
	x := newFixture(t)
	i := x.start(nil)
	for _, test := range []struct {
		result apibody.WorkResult
		kind   string
	}{
		{apibody.WorkResult{Status: apibody.WorkCompleted}, "completed"},
		{apibody.WorkResult{Status: apibody.WorkFailed, ErrorCode: "A.B", Message: "no"}, "failed"},
		{apibody.WorkResult{Status: apibody.WorkSnoozed, Snooze: time.Minute}, "snoozed"},
		{apibody.WorkResult{Status: apibody.WorkWaiting, CallbackTimeout: time.Hour}, "waiting"},
	} {
		run := x.run("T", "", nil)
		test.result.Token = i.one("T").Token
		i.wantSettled(http.StatusOK, test.result)
		kind, failed := x.outcome(run)
		if failed.RanBy != "w" {
			t.Errorf("%s was run by %q", test.result.Status, failed.RanBy)
		}
		if kind != test.kind || failed.Retryable != (kind == "snoozed") || kind == "failed" && failed.ErrorCode != "A.B" {
			t.Errorf("%s ended as %s, %+v", test.result.Status, kind, failed)
		}
	}
}

func TestAnAttemptWithoutHeartbeatsIsLostAndItsLateResultIsRefused(t *testing.T) {
	x := newFixture(t)
	i := x.start(func(_ *Config, times *timing) { times.lease = 300 * time.Millisecond })
	run := x.run("T", "", nil)
	a := i.one("T")
	kind, failed := x.outcome(run)
	if kind != "lost" || failed.ErrorCode != string(apierror.Lost) || !failed.Retryable {
		t.Errorf("it is %s, %+v", kind, failed)
	}
	got := i.settleFor(everyone, apibody.WorkResult{Token: a.Token, Status: apibody.WorkCompleted})
	if got[0].Status != http.StatusConflict || got[0].Error.ErrorCode != apierror.AttemptOver {
		t.Errorf("the late result was answered %+v", got[0])
	}
	if answer := i.heartbeatFor(everyone, apibody.WorkAttempt{Token: a.Token}); !slices.Contains(answer.Lost, a.Token) {
		t.Errorf("the late heartbeat was answered %+v", answer)
	}
}

func TestHeartbeatsKeepAnAttempt(t *testing.T) {
	const lease = time.Second
	x := newFixture(t)
	i := x.start(func(_ *Config, times *timing) { times.lease = lease })
	every := time.NewTicker(200 * time.Millisecond)
	defer every.Stop()
	for late := true; late; { // a lease has passed between two requests, on a busy machine: again, with another attempt
		run := x.run("T", "", nil)
		last := time.Now()
		a := i.one("T")
		late = false
		for n := 0; n < 10 && !late; n++ { // twice the lease
			<-every.C
			sent := time.Now()
			answer := i.heartbeatFor(everyone, apibody.WorkAttempt{Token: a.Token})
			late, last = time.Since(last) > lease, sent
			if len(answer.Lost) > 0 && !late {
				t.Fatalf("it is lost: %+v", answer)
			}
		}
		settled := i.settleFor(everyone, apibody.WorkResult{Token: a.Token, Status: apibody.WorkCompleted})
		if late = late || time.Since(last) > lease; late {
			continue
		}
		if len(settled) != 1 || settled[0].Status != http.StatusOK {
			t.Errorf("answered %+v", settled)
		}
		if kind, _ := x.outcome(run); kind != "completed" {
			t.Errorf("it is %s", kind)
		}
	}
}

func TestACancelledAttemptIsInTheAnswerToTheNextHeartbeat(t *testing.T) {
	x := newFixture(t)
	i := x.start(nil)
	for isOver := true; isOver; { // the patience has passed between two requests, on a busy machine: another attempt
		run := x.run("T", "", nil)
		a := i.one("T")
		x.cancel(run)
		testwait.Until(t, "an answer to a heartbeat names the attempt", func() bool {
			answer := i.heartbeatFor(everyone, apibody.WorkAttempt{Token: a.Token})
			isOver = slices.Contains(answer.Lost, a.Token)
			return isOver || slices.Contains(answer.Cancelled, a.Token)
		})
		if !isOver {
			i.wantSettled(http.StatusOK, apibody.WorkResult{Token: a.Token, Status: apibody.WorkFailed, ErrorCode: "A.B"})
		}
		if kind, _ := x.outcome(run); kind != "cancelled" {
			t.Errorf("it is %s", kind)
		}
	}
}

func TestACancelledAttemptEndsWithoutItsPullWorker(t *testing.T) {
	x := newFixture(t)
	i := x.start(func(_ *Config, times *timing) { times.patience = 100 * time.Millisecond })
	run := x.run("T", "", nil)
	i.one("T")
	x.cancel(run)
	if kind, _ := x.outcome(run); kind != "cancelled" {
		t.Errorf("it is %s", kind)
	}
}

// The promise to the scheduler: an attempt is not claimed before a pull worker asks for its type.
func TestAnAttemptOfATypeWithoutPullWorkersStaysUnclaimedAndLetsOthersPass(t *testing.T) {
	x := newFixture(t)
	i := x.start(nil)
	var rare []jobevent.Run
	for range 30 {
		rare = append(rare, x.run("RARE", "", nil))
	}
	x.run("T", "", nil)
	a := i.one("T")
	i.wantSettled(http.StatusOK, apibody.WorkResult{Token: a.Token, Status: apibody.WorkCompleted})
	if n := len(i.claim(everyone, "w", "T", 1, 300*time.Millisecond)); n != 0 {
		t.Fatalf("%d attempts of another type came", n)
	}
	if n := x.claimed(); n != 1 {
		t.Errorf("%d attempts are claimed", n)
	}
	left := len(rare)
	for left > 0 {
		got := i.claim(everyone, "w", "RARE", left, patience)
		if len(got) == 0 {
			t.Fatalf("%d do not come", left)
		}
		left -= len(got)
	}
}

func TestOwnersSeeTheirOwnAttemptsOnly(t *testing.T) {
	x := newFixture(t)
	i := x.start(nil)
	acme, other := pullwire.Caller{Owner: "acme"}, pullwire.Caller{Owner: "other"}
	x.run("T", "acme", nil)
	if got := i.claim(other, "w", "T", 1, 500*time.Millisecond); len(got) != 0 {
		t.Fatalf("another owner got %+v", got)
	}
	got := i.claim(acme, "w", "T", 1, patience)
	if len(got) != 1 {
		t.Fatal("its owner got none")
	}
	token := got[0].Token
	if answer := i.heartbeatFor(other, apibody.WorkAttempt{Token: token}); !slices.Contains(answer.Lost, token) {
		t.Errorf("another owner's heartbeat was answered %+v", answer)
	}
	for _, caller := range []pullwire.Caller{other, everyone} {
		answer := i.settleFor(caller, apibody.WorkResult{Token: token, Status: apibody.WorkCompleted})
		if answer[0].Status != http.StatusConflict {
			t.Errorf("another caller's result was answered %+v", answer)
		}
	}
	answer := i.settleFor(acme, apibody.WorkResult{Token: token, Status: apibody.WorkCompleted})
	if answer[0].Status != http.StatusOK {
		t.Errorf("its owner's result was answered %+v", answer)
	}
}

func TestOnlyAGatewayIsLetIn(t *testing.T) {
	x := newFixture(t)
	i := x.start(nil)
	for _, given := range []string{"", "x", testKey[:len(testKey)-2]} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, i.site.URL+pullwire.ClaimPath, strings.NewReader("{}"))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set(pullwire.SecretHeader, given)
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		_ = res.Body.Close()
		if res.StatusCode != http.StatusUnauthorized {
			t.Errorf("%q is answered %d", given, res.StatusCode)
		}
	}
}

// A gateway that is killed while a claim is held takes nothing with it.
func TestAnAttemptGoesToAnotherClaimWhenItsClientHasGone(t *testing.T) {
	x := newFixture(t)
	i := x.start(nil)
	for range 5 {
		ctx, cancel := context.WithCancel(t.Context())
		var claims sync.WaitGroup
		claims.Go(func() { i.claimUntil(ctx) })
		run := x.run("T", "", nil)
		cancel()
		claims.Wait()
		a := i.one("T")
		if a.JobID != run.JobID.String() {
			t.Fatalf("got %s", a.JobID)
		}
		i.wantSettled(http.StatusOK, apibody.WorkResult{Token: a.Token, Status: apibody.WorkCompleted})
	}
}

// claimUntil holds a claim until ctx ends, as a gateway does that is killed before it answers.
func (i *instance) claimUntil(ctx context.Context) {
	c := i.open(pullwire.Claim{Caller: everyone, WorkClaim: apibody.WorkClaim{
		Worker: "gone", Types: []string{"T"}, Slots: 1, Wait: patience,
	}})
	<-ctx.Done()
	i.takeBack(i.close(c))
}

func TestTwoInstancesAndManyPullWorkersStartEachAttemptOnce(t *testing.T) {
	x := newFixture(t)
	instances := []*instance{x.start(nil), x.start(nil)}
	const jobs = 300
	runs := make([]jobevent.Run, jobs)
	for n := range runs {
		runs[n] = jobevent.Run{
			JobID: newID(), Attempt: 1, JobType: "T", Payload: json.RawMessage(`{}`), Spec: jobevent.Spec{TimeoutMs: 600_000}, Rank: time.Now(),
		}
	}
	x.order(runs...)
	x.order(runs...) // the watchdog asks again
	var workers sync.WaitGroup
	var mu sync.Mutex
	done := 0
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for n := range 6 {
		workers.Go(func() {
			for ctx.Err() == nil {
				i := instances[n%2]
				got := i.claim(everyone, "w"+string(rune('a'+n)), "T", 7, 500*time.Millisecond)
				var results []apibody.WorkResult
				for _, a := range got {
					results = append(results, apibody.WorkResult{Token: a.Token, Status: apibody.WorkCompleted})
				}
				if len(results) == 0 {
					continue
				}
				for _, answer := range i.settleFor(everyone, results...) {
					if answer.Status != http.StatusOK {
						t.Errorf("answered %+v", answer)
					}
				}
				mu.Lock()
				if done += len(results); done == jobs {
					cancel()
				}
				mu.Unlock()
			}
		})
	}
	workers.Wait()
	if done != jobs {
		t.Errorf("%d of %d attempts ran", done, jobs)
	}
}

func TestWhatIsHeldMayBeSettledWhileTheInstanceStops(t *testing.T) {
	x := newFixture(t)
	i := x.start(nil)
	run := x.run("T", "", nil)
	a := i.one("T")
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		i.stop()
	}()
	<-i.stopping
	var none pullwire.Attempts
	claim := pullwire.Claim{Caller: everyone, WorkClaim: apibody.WorkClaim{Worker: "w", Types: []string{"T"}, Slots: 1}}
	if status := i.post(pullwire.ClaimPath, claim, &none); status != http.StatusServiceUnavailable {
		t.Errorf("a claim was answered %d", status)
	}
	i.wantSettled(http.StatusOK, apibody.WorkResult{Token: a.Token, Status: apibody.WorkCompleted})
	<-stopped
	if kind, _ := x.outcome(run); kind != "completed" {
		t.Errorf("it is %s", kind)
	}
}

func TestAPeekTakesNothing(t *testing.T) {
	x := newFixture(t)
	i := x.start(nil)
	x.run("T", "", nil)
	peek := pullwire.Claim{Caller: everyone, Peek: true, WorkClaim: apibody.WorkClaim{
		Worker: "w", Types: []string{"T"}, Slots: 1, Wait: patience,
	}}
	if status := i.post(pullwire.ClaimPath, peek, nil); status != http.StatusAccepted {
		t.Fatalf("answered %d", status)
	}
	if n := x.claimed(); n != 0 {
		t.Errorf("%d attempts are claimed", n)
	}
	i.one("T")
}
