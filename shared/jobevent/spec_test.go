package jobevent_test

import (
	"errors"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/retrypolicy"
)

func drawSpec(t *rapid.T, label string) jobevent.Spec {
	draw := func(name string, most int) int { return rapid.IntRange(0, most).Draw(t, label+name) }
	spec := jobevent.Spec{
		Priority: draw("priority", 9), MaxRetryCount: draw("retries", 100), TimeoutMs: int64(draw("timeout", 86_399_999)) + 1,
		KeepBuild: draw("build", 1) == 1,
	}
	policies := []*retrypolicy.Policy{
		nil, new(retrypolicy.Default), {Type: retrypolicy.Fixed, DelayMs: 5},
		{Type: retrypolicy.List, DelaysMs: []int64{1, 2}, Jitter: 0.5}, {Type: retrypolicy.List, DelaysMs: []int64{1, 3}, Jitter: 0.5},
	}
	spec.RetryPolicy = policies[draw("policy", len(policies)-1)]
	return spec
}

func TestASpecIsReadAsItWasWrittenAndEqualSpecsAreEqualBytes(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		specs := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) jobevent.Spec { return drawSpec(t, "") }), 2, 5).Draw(t, "specs")
		for _, spec := range specs {
			raw := spec.Bytes()
			if got, err := jobevent.ReadSpec(raw); err != nil || !got.Equal(&spec) {
				t.Fatalf("%s is read as %+v, %v", raw, got, err)
			}
			for _, other := range specs {
				if (string(other.Bytes()) == string(raw)) != spec.Equal(&other) {
					t.Fatalf("%s and %s are equal: %t", raw, other.Bytes(), spec.Equal(&other))
				}
			}
		}
	})
}

func TestAChangeSetsTheMembersThatItNamesAndNoOthers(t *testing.T) {
	t.Parallel()
	names := []string{"priority", "maxRetryCount", "timeoutMs", "retryPolicy", "keepBuild"}
	rapid.Check(t, func(t *rapid.T) {
		old, wanted := drawSpec(t, "old "), drawSpec(t, "new ")
		chosen := rapid.SliceOfDistinct(rapid.SampledFrom(names), rapid.ID).Draw(t, "members")
		want := old
		for name, set := range map[string]func(){
			"priority": func() { want.Priority = wanted.Priority }, "maxRetryCount": func() { want.MaxRetryCount = wanted.MaxRetryCount },
			"timeoutMs": func() { want.TimeoutMs = wanted.TimeoutMs }, "keepBuild": func() { want.KeepBuild = wanted.KeepBuild },
			"retryPolicy": func() { want.RetryPolicy = wanted.RetryPolicy },
		} {
			if slices.Contains(chosen, name) {
				set()
			}
		}
		patch := wanted.Members(func(name string) bool { return slices.Contains(chosen, name) })
		if len(chosen) == 0 {
			if patch != nil {
				t.Fatalf("a change of nothing is %s", patch)
			}
			return
		}
		if got, err := old.Change(patch); err != nil || !got.Equal(&want) {
			t.Fatalf("%s changed by %s is %s, %v, want %s", old.Bytes(), patch, got.Bytes(), err, want.Bytes())
		}
	})
}

func TestASpecOutOfBoundsIsRefused(t *testing.T) {
	t.Parallel()
	good := jobevent.Spec{TimeoutMs: 1}
	if err := good.Check(); err != nil {
		t.Errorf("%s: %v", good.Bytes(), err)
	}
	for _, change := range []func(*jobevent.Spec){
		func(s *jobevent.Spec) { s.Priority = -1 },
		func(s *jobevent.Spec) { s.Priority = jobevent.MaxPriority + 1 },
		func(s *jobevent.Spec) { s.MaxRetryCount = -1 },
		func(s *jobevent.Spec) { s.MaxRetryCount = jobevent.MaxRetryCount + 1 },
		func(s *jobevent.Spec) { s.TimeoutMs = 0 },
		func(s *jobevent.Spec) { s.TimeoutMs = jobevent.MaxTimeout.Milliseconds() + 1 },
	} {
		spec := good
		if change(&spec); !errors.Is(spec.Check(), jobevent.ErrInvalid) {
			t.Errorf("%s is accepted", spec.Bytes())
		}
	}
	if spec, err := good.Change([]byte(`{"priority":"high"}`)); err == nil || !spec.Equal(&good) {
		t.Errorf("an unreadable change gives %s, %v", spec.Bytes(), err)
	}
}
