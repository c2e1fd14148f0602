package alertstore_test

import (
	"encoding/json"
	"testing"

	"github.com/jobweaver/jobweaver/shared/apibody"
	"github.com/jobweaver/jobweaver/shared/apidb/alertstore"
	"github.com/jobweaver/jobweaver/shared/apidb/apidbtest"
	"github.com/jobweaver/jobweaver/shared/jobspec"
	"github.com/jobweaver/jobweaver/shared/pgtest"
	"github.com/jobweaver/jobweaver/shared/sealing"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

type fixture struct{ *apidbtest.Fixture }

func open(t *testing.T) *fixture {
	t.Helper()
	return &fixture{apidbtest.New(t)}
}

const slackURL = "https://hooks.slack.example/services/T0/B0/secret"

// alert stores an alert that fires at one failure within five minutes, unless change makes it another.
func (h *fixture) alert(t *testing.T, name string, sealer *sealing.Sealer, change func(*apibody.Alert)) alertstore.Alert {
	t.Helper()
	asked := apibody.Alert{
		Name: name, Failures: 1, WindowMinutes: 5, QuietMinutes: 60, To: jobspec.Destination{Slack: slackURL},
	}
	if change != nil {
		change(&asked)
	}
	made, err := h.Alerts.Create(t.Context(), nil, asked, sealer)
	if err != nil {
		t.Fatal(err)
	}
	return made
}

// ended counts ended jobs as projection does, some minutes ago.
func (h *fixture) ended(t *testing.T, owner, queue, jobType, what string, n, minutesAgo int, codes map[string]int) {
	t.Helper()
	encoded, err := json.Marshal(codes)
	if err != nil || codes == nil {
		encoded = []byte("{}")
	}
	h.Exec(t, `insert into tallies (everyone, owner_id, grain, at, queue, job_type, what, n, kept, error_codes)
		select sum.everyone, case when sum.everyone then '' else $1 end, 'minute',
			date_trunc('minute', now()) - $6 * interval '1 min', $2, $3, $4, $5, 0, $7::json
		from (values (true), (false)) as sum (everyone)
		on conflict (everyone, owner_id, grain, at, queue, job_type, what) do update set n = tallies.n + excluded.n`,
		owner, queue, jobType, what, n, minutesAgo, string(encoded))
}

// evaluate makes one pass, and returns the notices whose jobs it made.
func (h *fixture) evaluate(t *testing.T, sealer *sealing.Sealer) (sent []jobspec.AlertPayload) {
	t.Helper()
	done, _, err := h.Alerts.Evaluate(t.Context(), alertstore.Rules{Sealer: sealer})
	if err != nil || len(done.Failed) > 0 {
		t.Fatal(err, done.Failed)
	}
	for _, job := range done.Jobs {
		plain, err := sealer.Open(sealing.OfJob(job.JobID, sealing.Payload), job.Payload)
		var p jobspec.AlertPayload
		if err != nil || job.JobType != jobspec.Alert || json.Unmarshal(plain, &p) != nil {
			t.Fatalf("job %+v: %v", job, err)
		}
		sent = append(sent, p)
	}
	return sent
}
