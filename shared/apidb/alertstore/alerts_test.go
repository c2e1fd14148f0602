package alertstore_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"golang.org/x/sync/errgroup"

	"github.com/jobweaver/jobweaver/shared/apibody"
	"github.com/jobweaver/jobweaver/shared/apidb"
	"github.com/jobweaver/jobweaver/shared/apidb/alertstore"
	"github.com/jobweaver/jobweaver/shared/apidb/apidbtest"
	"github.com/jobweaver/jobweaver/shared/jobspec"
	"github.com/jobweaver/jobweaver/shared/sealing"
)

func TestAnAlertFiresOnceAndIsResolvedOnce(t *testing.T) {
	t.Parallel()
	h := open(t)
	h.alert(t, "a", nil, func(a *apibody.Alert) { a.Failures, a.JobType = 3, "CHARGE" })
	h.ended(t, "acme", "default", "CHARGE", "FAILED", 2, 0, nil)
	h.ended(t, "acme", "default", "MAIL", "FAILED", 9, 0, nil)
	if sent := h.evaluate(t, nil); len(sent) > 0 {
		t.Fatalf("it sent %+v below its threshold", sent)
	}
	h.ended(t, "acme", "default", "CHARGE", "FAILED", 1, 1, nil)
	sent := h.evaluate(t, nil)
	if len(sent) != 1 || sent[0].Notice.State != jobspec.NoticeFiring || sent[0].Notice.Failed != 3 || sent[0].To.Slack != slackURL ||
		sent[0].Notice.Since == nil {
		t.Fatalf("it sent %+v", sent)
	}
	since := *sent[0].Notice.Since
	for range 3 {
		if sent := h.evaluate(t, nil); len(sent) > 0 {
			t.Fatalf("it sent %+v again", sent)
		}
	}
	h.Exec(t, "update tallies set at = at - interval '10 min'")
	sent = h.evaluate(t, nil)
	if len(sent) != 1 || sent[0].Notice.State != jobspec.NoticeResolved || !sent[0].Notice.Since.Equal(since) {
		t.Fatalf("it sent %+v", sent)
	}
	if sent := h.evaluate(t, nil); len(sent) > 0 {
		t.Fatalf("it sent %+v", sent)
	}
	notices, _, err := h.Alerts.Notices(t.Context(), apidb.Everyone, apidb.Key{Name: "a"}, uuid.Max, 10)
	if err != nil || len(notices) != 2 || notices[0].State != "RESOLVED" || notices[1].State != "FIRING" {
		t.Errorf("its notices are %+v, %v", notices, err)
	}
}

func TestAnAlertThatFiresOnIsAnnouncedAgainAfterItsQuietTime(t *testing.T) {
	t.Parallel()
	h := open(t)
	h.alert(t, "a", nil, nil)
	h.ended(t, "", "default", "A", "FAILED", 1, 0, nil)
	for range 3 {
		if sent := h.evaluate(t, nil); len(sent) != 1 || sent[0].Notice.State != jobspec.NoticeFiring {
			t.Fatalf("it sent %+v", sent)
		}
		if sent := h.evaluate(t, nil); len(sent) > 0 {
			t.Fatalf("it sent %+v within its quiet time", sent)
		}
		h.Exec(t, "update alerts set announced_at = announced_at - interval '61 min'")
	}
}

// While a webhook cannot be reached, the jobs that send notices fail. An alert about all jobs would never end.
func TestFailedNoticesFireNoAlert(t *testing.T) {
	t.Parallel()
	h := open(t)
	h.alert(t, "all", nil, nil)
	h.alert(t, "own", nil, func(a *apibody.Alert) { a.JobType = jobspec.Alert })
	h.ended(t, "", "default", jobspec.Alert, "FAILED", 9, 0, nil)
	if sent := h.evaluate(t, nil); len(sent) > 0 {
		t.Errorf("it sent %+v", sent)
	}
}

func TestAPausedAlertSendsNothingAndOneThatIsPausedWhileItFiresNeither(t *testing.T) {
	t.Parallel()
	h := open(t)
	h.alert(t, "a", nil, func(a *apibody.Alert) { a.Paused = true })
	key := apidb.Key{Name: "a"}
	h.ended(t, "", "default", "A", "FAILED", 1, 0, nil)
	if sent := h.evaluate(t, nil); len(sent) > 0 {
		t.Fatalf("it sent %+v", sent)
	}
	if _, err := h.Alerts.Pause(t.Context(), nil, apidb.Everyone, key, nil, false); err != nil {
		t.Fatal(err)
	}
	if sent := h.evaluate(t, nil); len(sent) != 1 {
		t.Fatalf("it sent %+v", sent)
	}
	paused, err := h.Alerts.Pause(t.Context(), nil, apidb.Everyone, key, nil, true)
	if err != nil || paused.FiringSince != nil {
		t.Fatalf("%+v, %v", paused, err)
	}
	h.Exec(t, "delete from tallies")
	if sent := h.evaluate(t, nil); len(sent) > 0 {
		t.Errorf("it sent %+v", sent)
	}
}

// Alerts and tallies are random; each alert must count what a walk over all tallies counts.
func TestAlertsCountAsTheNaiveModelDoes(t *testing.T) {
	t.Parallel()
	h := open(t)
	r := rand.New(rand.NewPCG(uint64(time.Now().UnixNano()), 0))
	type tally struct {
		owner, queue, jobType, what, code string
		n, ago                            int
	}
	pick := func(of ...string) string { return of[r.IntN(len(of))] }
	var tallies []tally
	seen := map[string]bool{}
	for range 200 {
		x := tally{
			pick("", "acme", "other"), pick("q", "r"), pick("A", "B"), pick("FAILED", "COMPLETED", "CANCELLED", "ACCEPTED"), pick("X", "Y"),
			1 + r.IntN(9), r.IntN(30), // the windows are longer: another minute may begin meanwhile
		}
		key := fmt.Sprint(x.queue, x.jobType, x.what, x.ago) // a tally of all owners has one code here
		if seen[key] {
			continue
		}
		seen[key] = true
		tallies = append(tallies, x)
		h.ended(t, x.owner, x.queue, x.jobType, x.what, x.n, x.ago, map[string]int{x.code: x.n})
	}
	for i := range 60 {
		a := apibody.Alert{
			Name: fmt.Sprintf("a%d", i), OwnerID: pick("", "acme", "other", "none"), Queue: pick("", "q", "r"), JobType: pick("", "A", "B"),
			ErrorCode: pick("", "X", "Y"), WindowMinutes: 40, Failures: 1, QuietMinutes: 1, To: jobspec.Destination{Slack: slackURL},
		}
		made := h.alert(t, a.Name, nil, func(to *apibody.Alert) { *to = a })
		var want alertstore.Count
		for _, x := range tallies {
			if a.OwnerID != "" && x.owner != a.OwnerID || a.Queue != "" && x.queue != a.Queue || a.JobType != "" && x.jobType != a.JobType {
				continue
			}
			switch x.what {
			case "FAILED":
				want.Ended += int64(x.n)
				if a.ErrorCode == "" || a.ErrorCode == x.code {
					want.Failed += int64(x.n)
				}
			case "COMPLETED":
				want.Ended += int64(x.n)
			}
		}
		got, err := h.Alerts.Get(t.Context(), apidb.Everyone, apidb.Key{Name: a.Name, OwnerID: &made.OwnerID})
		if err != nil || got.Count != want {
			t.Errorf("%+v counts %+v, not %+v: %v", a, got.Count, want, err)
		}
	}
}

func TestProcessesAtTheSameTimeSendOneNotice(t *testing.T) {
	t.Parallel()
	h := open(t)
	for i := range 20 {
		h.alert(t, fmt.Sprintf("a%d", i), nil, nil)
	}
	h.ended(t, "", "default", "A", "FAILED", 1, 0, nil)
	var all errgroup.Group
	for range 4 {
		other := apidbtest.Open(t, h.URL)
		all.Go(func() error {
			done, _, err := other.Alerts.Evaluate(t.Context(), alertstore.Rules{})
			return errors.Join(append(done.Failed, err)...)
		})
	}
	if err := all.Wait(); err != nil {
		t.Fatal(err)
	}
	if n := apidbtest.One[int](t, h, "select count(*) from alert_notices"); n != 20 {
		t.Errorf("%d notices of 20 alerts", n)
	}
	if n := apidbtest.One[int](t, h, "select count(*) from jobs where job_type = 'ALERT'"); n != 20 {
		t.Errorf("%d jobs of 20 alerts", n)
	}
}

// A process may die before each of the statements that send a notice. Nothing is stored then, and the next pass sends
// the notice once. The job that it stored and did not publish is published by projection, as any job is.
func TestAProcessThatDiesInAPassSendsTheNoticeInTheNext(t *testing.T) {
	t.Parallel()
	for _, before := range []string{"insert on jobs", "insert on alert_notices", "update on alerts"} {
		t.Run(before, func(t *testing.T) {
			t.Parallel()
			h := open(t)
			h.alert(t, "a", nil, nil)
			h.ended(t, "", "default", "A", "FAILED", 1, 0, nil)
			h.Exec(t, `create function die() returns trigger language plpgsql as $$begin perform pg_terminate_backend(pg_backend_pid()); return new; end$$`)
			h.Exec(t, "create trigger die before "+before+" for each row execute function die()")
			done, _, err := h.Alerts.Evaluate(t.Context(), alertstore.Rules{})
			if err != nil || len(done.Failed) != 1 || len(done.Jobs) > 0 {
				t.Fatalf("the pass ended with %+v, %v", done, err)
			}
			if n := apidbtest.One[int](t, h, "select (select count(*) from jobs) + (select count(*) from alert_notices)"); n != 0 {
				t.Fatalf("%d rows are left", n)
			}
			h.Exec(t, "drop function die cascade")
			if sent := h.evaluate(t, nil); len(sent) != 1 {
				t.Fatalf("the next pass sent %+v", sent)
			}
			h.Exec(t, "update jobs set created_at = created_at - interval '15 s'")
			again, err := h.Statuses.UnconfirmedJobs(t.Context(), apidb.Page{Until: time.Now(), Limit: 100}, 10*time.Second)
			if err != nil || len(again) != 1 {
				t.Errorf("to be published again: %+v, %v", again, err)
			}
		})
	}
}

func TestADestinationIsSealedAndAFormerKeyIsNotNeededAfterAPass(t *testing.T) {
	t.Parallel()
	h := open(t)
	dir := t.TempDir()
	keys, err := sealing.CreateKeyset(filepath.Join(dir, "keyset"))
	if err != nil {
		t.Fatal(err)
	}
	sealer, err := sealing.New(sealing.Config{File: filepath.Join(dir, "keyset")})
	if err != nil {
		t.Fatal(err)
	}
	h.alert(t, "a", sealer, nil)
	h.alert(t, "plain", nil, nil)
	stored := func() string {
		return apidbtest.One[string](t, h, "select string_agg(destination::text, ' ' order by name) from alerts")
	}
	if first, _, _ := strings.Cut(stored(), " "); strings.Contains(first, "secret") {
		t.Fatalf("stored as %s", first)
	}
	former, err := keys.Keys()
	if err != nil {
		t.Fatal(err)
	}
	next, err := keys.Add()
	if err := errors.Join(err, keys.Promote(next)); err != nil {
		t.Fatal(err)
	}
	if sealer, err = sealing.New(sealing.Config{File: filepath.Join(dir, "keyset")}); err != nil {
		t.Fatal(err)
	}
	h.evaluate(t, sealer)
	if strings.Contains(stored(), "secret") {
		t.Errorf("stored as %s", stored())
	}
	text, err := os.ReadFile(filepath.Join(dir, "keyset"))
	alone := filepath.Join(dir, "alone")
	if err := errors.Join(err, os.WriteFile(alone, text, 0o600)); err != nil {
		t.Fatal(err)
	}
	if keys, err = sealing.OpenKeyset(alone); err != nil || keys.Remove(former[0].ID) != nil {
		t.Fatal(err)
	}
	if sealer, err = sealing.New(sealing.Config{File: alone}); err != nil {
		t.Fatal(err)
	}
	h.ended(t, "", "default", "A", "FAILED", 1, 0, nil)
	if sent := h.evaluate(t, sealer); len(sent) != 2 || sent[0].To.Slack != slackURL {
		t.Errorf("sent %+v", sent)
	}
}

func TestADestinationThatDoesNotOpenStopsNoOtherAlert(t *testing.T) {
	t.Parallel()
	h := open(t)
	h.alert(t, "a", nil, nil)
	h.Exec(t, `update alerts set destination = '"sealed:v1:AAAAAAAAAAAAAAAAAAAAAAAA"'`)
	h.alert(t, "b", nil, nil)
	h.ended(t, "", "default", "A", "FAILED", 1, 0, nil)
	done, _, err := h.Alerts.Evaluate(t.Context(), alertstore.Rules{})
	if err != nil || len(done.Jobs) != 1 || len(done.Failed) != 1 {
		t.Errorf("%+v, %v", done, err)
	}
}

func TestAnOwnerHasAMaximumOfAlertsAndTheirLastNotices(t *testing.T) {
	t.Parallel()
	h := open(t)
	h.Exec(t, `insert into alerts (alert_id, owner_id, name, job_type, queue, error_code, failures, percent, window_minutes, quiet_minutes,
			destination, paused)
		select uuidv7(), 'acme', 'n' || n, '', '', '', 1, 0, 5, 60, '{}', true from generate_series(1, 100) n`)
	asked := apibody.Alert{Name: "a", OwnerID: "acme", Failures: 1, WindowMinutes: 5, QuietMinutes: 60, To: jobspec.Destination{Slack: slackURL}}
	var many *apidb.TooManyError
	if _, err := h.Alerts.Create(t.Context(), nil, asked, nil); !errors.As(err, &many) {
		t.Errorf("one more than the maximum: %v", err)
	}
	if _, _, err := h.Alerts.Put(t.Context(), nil, asked, nil, nil); !errors.As(err, &many) {
		t.Errorf("one more than the maximum: %v", err)
	}
	made := h.alert(t, "a", nil, nil)
	h.Exec(t, `insert into alert_notices (alert_id, notice_id, state, failed, ended, job_id)
		select $1, uuidv7(- n * interval '1 min'), 'TEST', 0, 0, uuidv7() from generate_series(1, 500) n`, made.AlertID)
	if _, err := h.Alerts.Test(t.Context(), nil, apidb.Everyone, apidb.Key{Name: "a"}, nil, alertstore.Rules{}); err != nil {
		t.Fatal(err)
	}
	if n := apidbtest.One[int](t, h, "select count(*) from alert_notices"); n != 200 {
		t.Errorf("%d notices are kept", n)
	}
}
