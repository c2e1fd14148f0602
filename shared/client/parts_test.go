package client_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"

	"github.com/jobweaver/jobweaver/shared/client"
)

// pageOf serves two pages of schedules, and refuses a third.
func pageOf(t *testing.T) (*client.Client, func() []string) {
	t.Helper()
	var asked []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.URL.RawQuery)
		switch cursor := r.URL.Query().Get("cursor"); cursor {
		case "":
			_, _ = io.WriteString(w, `{"schedules": [{"name": "a", "lastJobId": null}, {"name": "b"}], "nextCursor": "b:"}`)
		case "b:":
			_, _ = io.WriteString(w, `{"schedules": [{"name": "c"}], "nextCursor": null}`)
		default:
			w.WriteHeader(http.StatusBadRequest)
		}
	}))
	t.Cleanup(server.Close)
	return client.New(server.URL, ""), func() []string { return asked }
}

func TestAListReadsPageAfterPage(t *testing.T) {
	t.Parallel()
	c, asked := pageOf(t)
	all := c.Schedules.Of("acme").List(t.Context())
	for range 2 { // it begins anew each time
		var names []string
		for schedule, err := range all {
			if err != nil {
				t.Fatal(err)
			}
			names = append(names, schedule.Name)
		}
		if !slices.Equal(names, []string{"a", "b", "c"}) {
			t.Errorf("it has %v", names)
		}
	}
	want := []string{"limit=200&ownerId=acme", "cursor=b%3A&limit=200&ownerId=acme"}
	if got := asked(); !slices.Equal(got, slices.Concat(want, want)) {
		t.Errorf("it asked %v", got)
	}
}

func TestAListReadsNoPageThatIsNotNeeded(t *testing.T) {
	t.Parallel()
	c, asked := pageOf(t)
	for schedule, err := range c.Schedules.List(t.Context()) {
		if err != nil || schedule.Name == "b" {
			break
		}
	}
	if got := asked(); len(got) != 1 {
		t.Errorf("it asked %v", got)
	}
}

func TestAListEndsAfterAnError(t *testing.T) {
	t.Parallel()
	for answer, is := range map[string]func(error) bool{
		`{"hooks": []}`:                  func(err error) bool { return err != nil }, // not what was asked for
		`{"operations": [], "nextCurs`:   func(err error) bool { return err != nil },
		`{"status": 403, "errorCode"...`: func(err error) bool { return errors.Is(err, client.ErrForbidden) },
	} {
		t.Run(answer, func(t *testing.T) {
			t.Parallel()
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				if answer[2:8] == "status" {
					w.WriteHeader(http.StatusForbidden)
				}
				_, _ = io.WriteString(w, answer)
			}))
			t.Cleanup(server.Close)
			var seen []string
			for operation, err := range client.New(server.URL, "").Operations.List(t.Context()) {
				if operation != nil || !is(err) {
					t.Errorf("it has %v, %v", operation, err)
				}
				seen = append(seen, fmt.Sprint(err))
			}
			if len(seen) != 1 {
				t.Errorf("it has %q", seen)
			}
		})
	}
}

func TestWaitingForAnOperationAsksUntilItHasEnded(t *testing.T) {
	t.Parallel()
	asked := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch asked++; asked {
		case 1:
			_, _ = io.WriteString(w, `{"operationId": "o", "status": "RUNNING", "finishedAt": null}`)
		case 2:
			w.WriteHeader(http.StatusGatewayTimeout) // a proxy that waits for less
		default:
			if r.URL.Path != "/api/operations/o" {
				t.Errorf("it asked %s", r.URL)
			}
			_, _ = io.WriteString(w, `{"operationId": "o", "status": "COMPLETED", "finishedAt": "2026-11-29T10:00:00Z"}`)
		}
	}))
	t.Cleanup(server.Close)
	ended, err := client.New(server.URL, "", client.WithRetries(0)).Operations.Wait(t.Context(), "o")
	if err != nil || ended.Status != client.OperationCompleted || asked != 3 {
		t.Errorf("after %d requests: %+v, %v", asked, ended, err)
	}
}
