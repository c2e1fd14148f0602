package jobspec_test

import (
	"testing"
	"time"

	"github.com/jobweaver/jobweaver/shared/jobspec"
)

const allPolicies = `"unique": {"key": "u", "for": "36h", "while": "WAITING"}, "throttle": {"key": "t", "perMs": 1500},
	"singleton": {"key": "s", "else": "drop"}`

func TestPoliciesAreReadAndWritten(t *testing.T) {
	t.Parallel()
	req := decode(t, job(allPolicies))
	if req.Unique.Key != "u" || time.Duration(req.Unique.For) != 36*time.Hour || req.Unique.While != jobspec.UniqueWhileWaiting ||
		req.Throttle.Key != "t" || req.Throttle.Per() != 1500*time.Millisecond || req.Singleton.Key != "s" || !req.Drops() || req.IsPlain() {
		t.Errorf("read as %+v %+v %+v", req.Unique, req.Throttle, req.Singleton)
	}
	const want = `{"unique":{"key":"u","for":"36h","while":"WAITING"},"throttle":{"key":"t","perMs":1500},"singleton":{"key":"s","else":"drop"}}`
	if got := string(jobspec.MarshalPolicies(req.Policies)); got != want {
		t.Errorf("written as %s", got)
	}
	if got := jobspec.MarshalPolicies(decode(t, own(`1`)).Policies); got != nil {
		t.Errorf("none are written as %s", got)
	}
	for body, want := range map[string]string{
		`"unique": {"key": "k"}`:                   `{"unique":{"key":"k","while":"ACTIVE"}}`,
		`"unique": {"key": "k", "for": "90s"}`:     `{"unique":{"key":"k","for":"1m30s"}}`,
		`"unique": {"key": "k", "for": "1h0m30s"}`: `{"unique":{"key":"k","for":"1h0m30s"}}`,
		`"unique": {"key": "k", "for": "60m"}`:     `{"unique":{"key":"k","for":"1h"}}`,
		`"singleton": {"key": "k"}`:                `{"singleton":{"key":"k","else":"queue"}}`,

		`"debounce": {"key": "k", "delayMs": 5}`:                   `{"debounce":{"key":"k","delayMs":5,"maxDelayMs":50}}`,
		`"debounce": {"key": "k", "delayMs": 86400000}`:            `{"debounce":{"key":"k","delayMs":86400000,"maxDelayMs":86400000}}`,
		`"debounce": {"key": "k", "delayMs": 5, "maxDelayMs": 5}`:  `{"debounce":{"key":"k","delayMs":5,"maxDelayMs":5}}`,
		`"debounce": {"maxDelayMs": 70, "delayMs": 5, "key": "k"}`: `{"debounce":{"key":"k","delayMs":5,"maxDelayMs":70}}`,
	} {
		if got := string(jobspec.MarshalPolicies(decode(t, job(body)).Policies)); got != want {
			t.Errorf("%s is written as %s", body, got)
		}
	}
}

// A singleton key is no ordering key that a client can name.
func TestASingletonHasALineOfItsOwn(t *testing.T) {
	t.Parallel()
	ordered, single := decode(t, job(`"orderingKey": "k"`)), decode(t, job(`"singleton": {"key": "k"}`))
	if ordered.LineKey() != "k" || single.LineKey() == "k" {
		t.Errorf("the lines are %q and %q", ordered.LineKey(), single.LineKey())
	}
	if key, is := jobspec.SingletonOf(single.LineKey()); key != "k" || !is {
		t.Errorf("the singleton is %q, %v", key, is)
	}
	if _, is := jobspec.SingletonOf("k"); is {
		t.Error("an ordering key is that of a singleton")
	}
}

func TestAJobThatRunsAgainKeepsItsTurnAndItsThrottle(t *testing.T) {
	t.Parallel()
	old := decode(t, job(allPolicies))
	for body, want := range map[string]string{
		`{}`:              `{"throttle":{"key":"t","perMs":1500},"singleton":{"key":"s","else":"drop"}}`,
		`{"priority": 1}`: `{"throttle":{"key":"t","perMs":1500},"singleton":{"key":"s","else":"drop"}}`,
		`{"throttle":null,"singleton":{"else":"queue"}}`: `{"singleton":{"key":"s","else":"queue"}}`,
		`{"unique":{"key":"v"},"singleton":null,"throttle":{"perMs":1}}`: `{"unique":{"key":"v","while":"ACTIVE"},` +
			`"throttle":{"key":"t","perMs":1}}`,
	} {
		patch, err := jobspec.DecodePatch([]byte(body))
		if err != nil {
			t.Fatal(err)
		}
		again, err := patch.Apply(old.Again())
		if got := string(jobspec.MarshalPolicies(again.Policies)); err != nil || got != want {
			t.Errorf("%s: %s, %v", body, got, err)
		}
	}
}
