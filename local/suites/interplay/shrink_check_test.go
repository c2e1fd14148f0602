package interplay

import (
	"os/exec"
	"slices"
	"strings"
	"testing"
)

func TestAProgramIsShortenedToWhatMatters(t *testing.T) {
	t.Parallel()
	has := func(p Program, do string) bool {
		return slices.ContainsFunc(p.Steps, func(s Step) bool { return s.Do == do })
	}
	p := NewProgram(1)
	for !has(p, "flow") || !has(p, "bulk") {
		p = NewProgram(p.Seed + 1)
	}
	tries := 0
	got := Shorten(p, func(candidates []Program) *Program {
		for i, c := range candidates {
			tries++
			if has(c, "flow") && has(c, "bulk") {
				return &candidates[i]
			}
		}
		return nil
	})
	if len(got.Steps) != 2 {
		t.Errorf("%d steps are left after %d tries: %+v", len(got.Steps), tries, got.Steps)
	}
	for _, s := range got.Steps {
		for _, j := range s.Jobs {
			if j.Priority > 0 || len(j.After) > 0 && j.Uses == "" && j.ForEach == "" || j.Callback != "" {
				t.Errorf("an option is left that does not matter: %+v", j)
			}
		}
	}
}

func TestTheSameSeedGivesTheSameProgram(t *testing.T) {
	t.Parallel()
	a, b := NewProgram(11), NewProgram(11)
	if len(a.Steps) != len(b.Steps) || len(a.Steps) < 12 {
		t.Errorf("%d and %d steps", len(a.Steps), len(b.Steps))
	}
	seen := map[string]bool{}
	for seed := range uint64(300) {
		for _, s := range NewProgram(seed).Steps {
			seen[s.Do+" "+s.Way] = true
		}
	}
	for _, do := range []string{
		"submit one", "submit many", "submit event", "submit structured", "submit events", "submit hook", "submit outbox", "submit rollback",
		"repeat ", "batch ", "flow ", "cancel ", "retry ", "reschedule ", "patch ", "run-again ", "delete ", "bulk ", "abort ", "batch-close ",
		"batch-cancel ", "batch-retry ", "flow-cancel ", "flow-retry ", "control ", "lift ", "resume ", "queue-put ", "queue-remove ",
		"schedule-put ", "schedule-run ", "schedule-pause ", "schedule-resume ", "schedule-delete ", "alert-put ", "alert-test ", "alert-pause ", "alert-resume ", "intrude /api/jobs/", "intrude /api/operations/", "retain ", "kill ", "stop ", "drain ",
	} {
		if !seen[do] {
			t.Errorf("no program of 300 has the step %q", do)
		}
	}
}

func TestTheScriptOfAProgramIsAShellScript(t *testing.T) {
	t.Parallel()
	for _, r := range records(t) {
		text := Script(r)
		check := exec.CommandContext(t.Context(), "sh", "-n")
		check.Stdin = strings.NewReader(text)
		if out, err := check.CombinedOutput(); err != nil {
			t.Errorf("%v: %s\n%s", err, out, text)
		}
		if n := strings.Count(text, "curl "); n != len(r.Asked) {
			t.Errorf("%d commands for %d requests", n, len(r.Asked))
		}
		if strings.Contains(text, r.Owner) {
			t.Error("the owner's name is in it")
		}
	}
}
