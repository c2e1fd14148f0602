package gateway_test

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"testing"

	"github.com/google/uuid"

	"github.com/jobweaver/jobweaver/shared/apierror"
	"github.com/jobweaver/jobweaver/shared/jobstate"
)

type deadPage struct {
	Jobs          []struct{ JobID uuid.UUID }
	NextCursor    *string
	Page, Size    *int
	TotalElements *int64
}

func (h *fixture) dead(parameters string) (ids []uuid.UUID, page deadPage) {
	h.t.Helper()
	h.get("/api/jobs/dead?" + parameters).want(http.StatusOK).into(&page)
	for _, job := range page.Jobs {
		ids = append(ids, job.JobID)
	}
	return ids, page
}

func TestDeadJobsAreListedByCursorOrByPage(t *testing.T) {
	t.Parallel()
	h := open(t)
	var dead []uuid.UUID // newest first
	for i := range 7 {
		body := `{"jobType": "MAIL", "payload": 1, "tags": ["` + fmt.Sprint("t", i%2) + `"]}`
		id := h.submit(body)
		h.scheduler(id, 1, jobstate.Failed, nil)
		dead = slices.Insert(dead, 0, id)
		h.scheduler(h.submit(body), 1, jobstate.Completed, nil)
		h.submit(body)
	}
	all, page := h.dead("")
	if !slices.Equal(all, dead) || page.NextCursor != nil || page.Page != nil || page.TotalElements != nil {
		t.Errorf("listed %v, want %v", all, dead)
	}
	var walked []uuid.UUID
	for cursor := ""; ; {
		ids, page := h.dead("limit=3" + cursor)
		if walked = append(walked, ids...); page.NextCursor == nil {
			break
		}
		cursor = "&cursor=" + *page.NextCursor
	}
	if !slices.Equal(walked, dead) {
		t.Errorf("walked %v, want %v", walked, dead)
	}
	for number, want := range [][]uuid.UUID{dead[:3], dead[3:6], dead[6:], nil} {
		ids, page := h.dead(fmt.Sprintf("size=3&page=%d", number))
		if !slices.Equal(ids, want) || *page.Page != number || *page.Size != 3 || *page.TotalElements != 7 || (page.NextCursor != nil) != (number < 2) {
			t.Errorf("page %d is %+v", number, page)
		}
	}
	if ids, page := h.dead("page=0&tag=t1&type=MAIL&queue=default&" + url.Values{"since": {"2020-01-01T00:00:00Z"}}.Encode()); *page.TotalElements != 3 ||
		!slices.Equal(ids, []uuid.UUID{dead[1], dead[3], dead[5]}) {
		t.Errorf("of a tag are %+v", page)
	}
}

func TestInvalidPageOfDeadJobsIsRefused(t *testing.T) {
	t.Parallel()
	h := open(t)
	for parameters, at := range map[string]string{
		"page=-1": "page", "size=201": "size", "size=0": "size", "page=1&cursor=" + uuid.NewString(): "page", "size=1&limit=1": "page",
		"page=100000&size=200": "page", "status=FAILED": "status", "limit=0": "limit",
	} {
		h.get("/api/jobs/dead?"+parameters).wantError(apierror.InvalidJobRequest, at)
	}
}
