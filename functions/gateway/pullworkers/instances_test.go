package pullworkers

import (
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jobweaver/jobweaver/functions/gateway/edge"
)

func TestAttemptsOfAnInstanceThatStaysAwayAreLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, in, away := &Instances{}, &instance{}, errors.New("away")
		for _, step := range []struct {
			after  time.Duration
			failed error
			over   bool
		}{
			{0, nil, false}, {time.Minute, away, false}, {3 * time.Second, away, false}, {3 * time.Second, nil, false},
			{3 * time.Second, away, false}, {3 * time.Second, away, false}, {4 * time.Second, away, true}, {time.Second, nil, false},
			{time.Second, away, false}, {time.Minute, away, false},
		} {
			<-time.After(step.after)
			if over := p.isOver(in, time.Now(), step.failed); over != step.over {
				t.Errorf("%s later, after %v, over is %v", step.after, step.failed, over)
			}
		}
		frozen := time.Now()
		<-time.After(edge.RequestPatience)
		if !p.isOver(in, frozen, away) {
			t.Error("an instance that answers nothing is not over")
		}
	})
}

func TestPlainHTTPToPullIsReported(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		urls  []string
		plain bool
	}{
		{nil, false}, {[]string{"https://pull:8443"}, false}, {[]string{"http://127.0.0.1:8080", "http://localhost"}, false},
		{[]string{"http://pull:8080"}, true}, {[]string{"https://pull:8443", "http://10.0.0.7:8080"}, true},
	} {
		plain := Config{URLs: c.urls}.Plain()
		if slices.Equal(plain, []string{"PULL_URL (http)"}) != c.plain || !c.plain && len(plain) > 0 {
			t.Errorf("%v: in plain text are %v", c.urls, plain)
		}
	}
}
