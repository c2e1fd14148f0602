package gateway_test

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/jobweaver/jobweaver/shared/apierror"
	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/jobstate"
)

type deadGroups struct {
	At, HoursSince time.Time
	Jobs, Total    int
	Complete       bool
	Groups         []struct {
		JobType                     string
		ErrorCode                   *string
		Jobs, DayBefore             int
		New                         bool
		FirstFailedAt, LastFailedAt time.Time
		Hours                       []int
		Example                     *struct {
			JobID   uuid.UUID
			Message string
		}
	}
}

func (c *client) deadGroups(query string) (groups deadGroups) {
	c.t.Helper()
	c.get("/api/jobs/dead/groups?" + query).want(http.StatusOK).into(&groups)
	return groups
}

// names lists the groups as "MAIL SMTP 2".
func (g deadGroups) names() string {
	var names []string
	for _, group := range g.Groups {
		code := "-"
		if group.ErrorCode != nil {
			code = *group.ErrorCode
		}
		names = append(names, fmt.Sprint(group.JobType, " ", code, " ", group.Jobs))
	}
	return strings.Join(names, ", ")
}

// fail submits a job, which fails.
func (h *fixture) fail(jobType, code, message string, at time.Time) uuid.UUID {
	h.t.Helper()
	id := h.submit(`{"jobType": "` + jobType + `", "payload": 1}`)
	h.scheduler(id, 1, jobstate.Failed, func(s *jobevent.Status) {
		s.Attempt, s.FinishedAt, s.LastError = 1, &at, &jobevent.Error{ErrorCode: code, Message: message}
	})
	return id
}

func TestDeadJobsAreGroupedByTypeAndErrorCode(t *testing.T) {
	t.Parallel()
	h := open(t)
	now := time.Now()
	h.fail("MAIL", "SMTP", "first", now.Add(-30*time.Hour))
	first := h.fail("MAIL", "SMTP", "second", now.Add(-2*time.Hour))
	last := h.fail("MAIL", "SMTP", "third", now)
	h.fail("MAIL", "", "no code", now)
	h.fail("SLOW", "SMTP", "of another type", now.Add(-time.Hour))
	h.scheduler(h.submit(plainJob), 1, jobstate.Completed, nil)

	all := h.deadGroups("")
	if all.names() != "MAIL SMTP 3, MAIL - 1, SLOW SMTP 1" || all.Jobs != 5 || all.Total != 3 || !all.Complete {
		t.Fatalf("%+v", all)
	}
	mail := all.Groups[0]
	sum := mail.DayBefore
	for _, n := range mail.Hours {
		sum += n
	}
	if mail.New || !all.Groups[1].New || mail.DayBefore != 1 || sum != 3 || mail.Example == nil || mail.Example.JobID != last || mail.Example.Message != "third" ||
		!mail.LastFailedAt.Equal(now.Truncate(time.Microsecond)) || !all.HoursSince.Equal(all.At.Truncate(time.Hour).Add(-23*time.Hour)) {
		t.Errorf("%+v", mail)
	}
	for query, want := range map[string]string{
		"type=MAIL": "MAIL SMTP 3, MAIL - 1", "errorCode=SMTP": "MAIL SMTP 3, SLOW SMTP 1", "noErrorCode=true": "MAIL - 1",
		"type=MAIL&errorCode=SMTP": "MAIL SMTP 3", "type=NONE": "", "limit=1": "MAIL SMTP 3", "ownerId=acme": "",
		"since=" + url.QueryEscape(now.Add(-time.Minute).Format(time.RFC3339Nano)): "MAIL SMTP 3, MAIL - 1",
	} {
		if got := h.deadGroups(query); got.names() != want || query == "limit=1" && (got.Total != 3 || got.Jobs != 5) {
			t.Errorf("%s: %+v", query, got)
		}
	}
	h.scheduler(last, 2, jobstate.Running, nil)
	eventually(t, "the group has another example", func() bool {
		mail := h.deadGroups("type=MAIL&errorCode=SMTP").Groups[0]
		return mail.Jobs == 2 && mail.Example != nil && mail.Example.JobID == first && mail.Example.Message == "second"
	})
}

func TestAnOwnerSeesItsOwnGroupsOfDeadJobs(t *testing.T) {
	t.Parallel()
	h := openLocked(t)
	for i, owner := range []string{"acme", "acme", "other"} {
		id := h.accept(owner)
		h.scheduler(id, 1, jobstate.Failed, func(s *jobevent.Status) {
			s.Attempt, s.LastError = 1, &jobevent.Error{ErrorCode: "DEMO", Message: fmt.Sprint(owner, i)}
		})
	}
	for name, of := range map[string]struct {
		*client
		query string
		jobs  int
	}{
		"acme": {h.as("acme", "read"), "", 2}, "other": {h.as("other", "read"), "", 1}, "a third one": {h.as("third", "admin"), "", 0},
		"acme, of other": {h.as("acme", "admin"), "ownerId=other", 0}, "acme, of itself": {h.as("acme", "read"), "ownerId=acme", 2},
	} {
		groups := of.deadGroups(of.query)
		if groups.Jobs != of.jobs || of.jobs == 1 && groups.Groups[0].Example.Message != "other2" {
			t.Errorf("%s sees %+v", name, groups)
		}
	}
}

func TestGroupsOfDeadJobsRefuseBadFilters(t *testing.T) {
	t.Parallel()
	h := open(t)
	for query, at := range map[string]string{
		"errorCode=A&noErrorCode=true": "noErrorCode", "noErrorCode=no": "noErrorCode", "limit=0": "limit", "limit=201": "limit",
		"since=yesterday": "since", "queue=mail": "queue", "type=a+b": "type",
	} {
		h.get("/api/jobs/dead/groups?"+query).wantError(apierror.InvalidJobRequest, at)
	}
}
