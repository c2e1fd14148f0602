package apidb

import (
	"reflect"
	"testing"

	"github.com/google/uuid"
)

func TestAChangePayloadNamesItsJobs(t *testing.T) {
	t.Parallel()
	ids := make([]uuid.UUID, mostNamed)
	for i := range ids {
		ids[i] = uuid.New()
	}
	var read []uuid.UUID
	for _, payload := range changePayloads(ChangeEnded, ids) {
		if len(payload) >= 8000 {
			t.Errorf("PostgreSQL refuses %d bytes", len(payload))
		}
		change := readChange(payload)
		if change.Kind != ChangeEnded {
			t.Errorf("kind %c", change.Kind)
		}
		read = append(read, change.JobIDs...)
	}
	if !reflect.DeepEqual(read, ids) {
		t.Errorf("%d jobs of %d", len(read), len(ids))
	}
	if got := changePayloads(ChangeEnded, append(ids, uuid.New())); len(got) != 1 || readChange(got[0]).Kind != ChangeMany {
		t.Errorf("of too many: %v", got)
	}
	if got := changePayloads(ChangeGone, append(ids, uuid.New())); len(got) != 3 {
		t.Errorf("of jobs that lists need not show any more: %d", len(got))
	}
	if got := changePayloads(ChangeEnded, nil); len(got) != 0 {
		t.Errorf("of none: %v", got)
	}
	for _, odd := range []string{"", "e$", "eAAAA", "é"} {
		if got := readChange(odd); got.Kind != ChangeMany {
			t.Errorf("%q is %+v", odd, got)
		}
	}
	if got := readChange(string(rune(ChangeBegins))); got.Kind != ChangeBegins || len(got.JobIDs) > 0 {
		t.Errorf("%+v", got)
	}
}
