package schedulestore_test

import (
	"strings"
	"testing"
	"time"

	"github.com/jobweaver/jobweaver/shared/apibody"
	"github.com/jobweaver/jobweaver/shared/apidb"
)

// A tick whose job a policy refuses is recorded, and cancels no job that it would have replaced.
func TestATickWhoseJobIsADuplicateIsSkipped(t *testing.T) {
	t.Parallel()
	h := open(t)
	for _, name := range []string{"first", "second"} {
		asked, err := apibody.DecodeSchedule([]byte(`{"name": "` + name + `", "cron": "* * * * * *", "overlap": "cancel", "missed": "all",
			"job": {"jobType": "SIMULATION", "payload": {"steps": [{"type": "LOG", "message": "hi"}]}, "unique": {"key": "k"}}}`))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := h.Schedules.Create(t.Context(), nil, apidb.Everyone, asked); err != nil {
			t.Fatal(err)
		}
		h.Ago(t, name, 3*time.Second)
		h.Once(t)
		fired, _ := h.fire(t)
		ticks := h.ticks(t, apidb.Key{Name: name})
		if want := name == "first"; (len(fired.Jobs) == 1) != want || len(fired.Cancels) != 0 || len(ticks) != 1 || (ticks[0].Outcome == "fired") != want {
			t.Fatalf("%s: fired %+v, ticks %+v", name, fired, ticks)
		}
		if name == "second" && (!strings.HasPrefix(ticks[0].Reason, "unique: job ") || !strings.HasSuffix(ticks[0].Reason, " has the key")) {
			t.Errorf("the reason is %q", ticks[0].Reason)
		}
	}
}
