package apibody_test

import (
	"errors"
	"testing"

	"github.com/jobweaver/jobweaver/shared/apibody"
	"github.com/jobweaver/jobweaver/shared/apierror"
)

// wrongValues are values that no entry of a list of results or checkpoints may have.
var wrongValues = []string{
	`{"a": 1, "a": 2}`, `"\ud800"`, "\"\xff\"", `"\u0000"`, `1e999`,
}

func TestAWrongResultDoesNotSpoilTheOthers(t *testing.T) {
	t.Parallel()
	for _, wrong := range wrongValues {
		settle, err := apibody.DecodeWorkSettle([]byte(`{"worker": "w", "results": [
			{"token": "a", "status": "COMPLETED", "output": ` + wrong + `}, {"token": "b", "status": "COMPLETED", "output": 1}]}`))
		if err != nil || len(settle.Results) != 2 {
			t.Errorf("%s: got %+v, %v", wrong, settle, err)
			continue
		}
		if one := settle.Results[0]; one.Token != "a" || !isRefused(one.Wrong) {
			t.Errorf("%s: the wrong result is %+v", wrong, one)
		}
		if one := settle.Results[1]; one.Token != "b" || string(one.Output) != "1" || one.Wrong != nil {
			t.Errorf("%s: the other result is %+v", wrong, one)
		}
	}
}

func TestAWrongCheckpointDoesNotSpoilTheOthers(t *testing.T) {
	t.Parallel()
	for _, wrong := range wrongValues {
		all, err := apibody.DecodeWorkCheckpoints([]byte(`{"worker": "w", "checkpoints": [
			{"token": "a", "number": 1, "checkpoint": ` + wrong + `}, {"token": "b", "number": 2, "checkpoint": 1}]}`))
		if err != nil || len(all.Checkpoints) != 2 {
			t.Errorf("%s: got %+v, %v", wrong, all, err)
			continue
		}
		if one := all.Checkpoints[0]; one.Token != "a" || !isRefused(one.Wrong) {
			t.Errorf("%s: the wrong checkpoint is %+v", wrong, one)
		}
		if one := all.Checkpoints[1]; one.Token != "b" || string(one.Checkpoint) != "1" || one.Wrong != nil {
			t.Errorf("%s: the other checkpoint is %+v", wrong, one)
		}
	}
}

func TestAListOfResultsIsReadStrictly(t *testing.T) {
	t.Parallel()
	const results = `"results": [{"token": "a", "status": "COMPLETED"}]`
	for _, body := range []string{
		``, `[]`, `{}`, `{"worker": "w"}`, `{` + results + `}`, `{"worker": "w", "results": []}`,
		`{"worker": "w", "worker": "v", ` + results + `}`, `{"worker": "w", ` + results + `, ` + results + `}`,
		`{"worker": "w", "other": 1, ` + results + `}`, "{\"worker\": \"\xff\", " + results + `}`,
		`{"worker": "w", "results": [{"token": "a"]}`, `{"worker": "w", ` + results + `} {}`,
	} {
		if settle, err := apibody.DecodeWorkSettle([]byte(body)); !isRefused(err) {
			t.Errorf("%s: got %+v, %v", body, settle, err)
		}
	}
}

func isRefused(err error) bool {
	var refused *apierror.Error
	return errors.As(err, &refused) && refused.Code == apierror.InvalidJobRequest
}
