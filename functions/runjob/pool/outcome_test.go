package pool

import (
	"encoding/json"
	"strings"
	"testing"
)

// The answer of a service that a FUNCTION calls is a job's output. If the gateway could not read it, every list with
// the job would fail with status 500. If the scheduler could not read it, the job would run for ever.
func TestAnOutputThatReadersWouldRefuseIsRefused(t *testing.T) {
	t.Parallel()
	nested := func(levels int) string { return strings.Repeat("[", levels) + strings.Repeat("]", levels) }
	for output, right := range map[string]bool{
		`{"a": 1}`: true, `null`: true, `"\ud83d\ude00"`: true, nested(9_000): true, `{"a": {"b": 1}, "b": 1}`: true,
		`{"a": 1, "a": 2}`: false, `[{"b": {"a": 1, "\u0061": 2}}]`: false, `"\ud800"`: false, `{"\udc00": 1}`: false,
		nested(10_000): false, nested(9_950): false, "\"\xff\"": false, `{`: false, ``: false, `1 2`: false,
		strings.Repeat(" ", 10_000) + `1],[2`: false,
	} {
		if wrong := checkOutput(json.RawMessage(output)); (wrong == nil) != right {
			t.Errorf("%.40s: %v", output, wrong)
		}
	}
}
