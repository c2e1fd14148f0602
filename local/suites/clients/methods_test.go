package clients

import (
	"context"
	"encoding/json"
	"errors"
	"iter"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jobweaver/jobweaver/shared/client"
)

// first returns the error of the first entry of a list.
func first[T any](entries iter.Seq2[T, error]) error {
	for _, err := range entries {
		return err
	}
	return nil
}

// failed returns the error of a call.
func failed[T any](_ T, err error) error { return err }

var (
	aJob      = client.JobRequest{JobType: "A", Payload: 1}
	aSchedule = client.ScheduleRequest{Name: "n", Cron: "@daily", Job: aJob}
)

// goCalls returns a call of each method of a client, by its name.
func goCalls(ctx context.Context, c *client.Client) map[string]func() error {
	return map[string]func() error{
		"Submit": func() error { return failed(c.Submit(ctx, aJob)) },
		"List":   func() error { return first(c.List(ctx, client.Filter{})) },
		"SubmitBatch": func() error {
			return failed(c.SubmitBatch(ctx, []client.JobRequest{aJob}))
		},
		"Get": func() error { return failed(c.Get(ctx, "i", 0)) },
		"Change": func() error {
			return c.Change(ctx, "i", map[string]any{"priority": 1})
		},
		"Delete": func() error { return c.Delete(ctx, "i") },
		"Logs": func() error {
			_, _, err := c.Logs(ctx, "i", 0, "")
			return err
		},
		"Cancel":     func() error { return c.Cancel(ctx, "i") },
		"Retry":      func() error { return c.Retry(ctx, "i") },
		"Reschedule": func() error { return c.Reschedule(ctx, "i", time.Now()) },
		"RunAgain":   func() error { return failed(c.RunAgain(ctx, "i", nil)) },
		"Callback": func() error {
			return c.Callback(ctx, "s", client.Callback{JobID: "i", Attempt: 1, Status: client.Completed})
		},
		"Stream": func() error { return first(c.Stream(ctx, client.Filter{})) },
		"SendEvent": func() error {
			return failed(c.SendEvent(ctx, client.CloudEvent{ID: "e", Source: "/s", Type: "t"}))
		},
		"Dead.List": func() error {
			return first(c.Dead.List(ctx, client.Filter{Type: "A"}))
		},
		"Dead.Groups": func() error {
			return failed(c.Dead.Groups(ctx, client.DeadGroupFilter{}))
		},
		"Deliveries.OfJob": func() error { return failed(c.Deliveries.OfJob(ctx, "i")) },
		"Deliveries.Retry": func() error { return failed(c.Deliveries.Retry(ctx, "i", 4)) },
		"Deliveries.List":  func() error { return first(c.Deliveries.List(ctx, "")) },
		"Audit.List": func() error {
			return first(c.Audit.List(ctx, client.AuditFilter{}))
		},
		"Controls.List": func() error { return failed(c.Controls.List(ctx)) },
		"Controls.Get": func() error {
			return failed(c.Controls.Get(ctx, client.ControlQueue, "a/b"))
		},
		"Controls.Set": func() error {
			return failed(c.Controls.Set(ctx, client.ControlQueue, "q", client.ControlRequest{}))
		},
		"Controls.Delete": func() error {
			return failed(c.Controls.Delete(ctx, client.ControlType, "A"))
		},
		"Controls.Pause": func() error {
			return failed(c.Controls.Pause(ctx, client.ControlOwner, "o"))
		},
		"Controls.Resume": func() error {
			return failed(c.Controls.Resume(ctx, client.ControlFairnessKey, "*"))
		},
		"Queues.List": func() error { return failed(c.Queues.List(ctx)) },
		"Queues.Get":  func() error { return failed(c.Queues.Get(ctx, "q")) },
		"Queues.Create": func() error {
			return failed(c.Queues.Create(ctx, "q", client.QueueOfPull))
		},
		"Queues.Remove": func() error { return c.Queues.Remove(ctx, "q", true) },
		"Queues.Shares": func() error { return first(c.Queues.Shares(ctx, "q", "k")) },
		"Operations.Start": func() error {
			return failed(c.Operations.Start(ctx, client.OperationRequest{Command: "cancel"}))
		},
		"Operations.List": func() error { return first(c.Operations.List(ctx)) },
		"Operations.Get": func() error {
			return failed(c.Operations.Get(ctx, "i", time.Second))
		},
		"Operations.Abort": func() error { return failed(c.Operations.Abort(ctx, "i")) },
		"Batches.Create": func() error {
			return failed(c.Batches.Create(ctx, client.BatchRequest{}))
		},
		"Batches.List": func() error {
			return first(c.Batches.List(ctx, client.BatchFilter{}))
		},
		"Batches.Get":    func() error { return failed(c.Batches.Get(ctx, "i", 0)) },
		"Batches.Close":  func() error { return c.Batches.Close(ctx, "i") },
		"Batches.Cancel": func() error { return failed(c.Batches.Cancel(ctx, "i")) },
		"Batches.Retry":  func() error { return failed(c.Batches.Retry(ctx, "i")) },
		"Flows.Create": func() error {
			return failed(c.Flows.Create(ctx, client.FlowRequest{}))
		},
		"Flows.List": func() error {
			return first(c.Flows.List(ctx, client.BatchFilter{}))
		},
		"Flows.Get":        func() error { return failed(c.Flows.Get(ctx, "i", 0)) },
		"Flows.Cancel":     func() error { return failed(c.Flows.Cancel(ctx, "i")) },
		"Flows.Retry":      func() error { return failed(c.Flows.Retry(ctx, "i")) },
		"Alerts.Create":    func() error { return failed(c.Alerts.Create(ctx, client.AlertRequest{Name: "n"})) },
		"Alerts.List":      func() error { return first(c.Alerts.List(ctx)) },
		"Alerts.Get":       func() error { return failed(c.Alerts.Of("o").Get(ctx, "n")) },
		"Alerts.Set":       func() error { return failed(c.Alerts.Set(ctx, "n", client.AlertRequest{})) },
		"Alerts.Delete":    func() error { return c.Alerts.Delete(ctx, "n") },
		"Alerts.Pause":     func() error { return failed(c.Alerts.Pause(ctx, "n")) },
		"Alerts.Resume":    func() error { return failed(c.Alerts.Resume(ctx, "n")) },
		"Alerts.Test":      func() error { return failed(c.Alerts.Test(ctx, "n")) },
		"Alerts.Notices":   func() error { return first(c.Alerts.Notices(ctx, "n")) },
		"Schedules.Create": func() error { return failed(c.Schedules.Create(ctx, aSchedule)) },
		"Schedules.List":   func() error { return first(c.Schedules.List(ctx)) },
		"Schedules.Times":  func() error { return failed(c.Schedules.Times(ctx, aSchedule)) },
		"Schedules.Get":    func() error { return failed(c.Schedules.Of("o").Get(ctx, "n")) },
		"Schedules.Set":    func() error { return failed(c.Schedules.Set(ctx, "n", aSchedule)) },
		"Schedules.Delete": func() error { return c.Schedules.Delete(ctx, "n") },
		"Schedules.Pause":  func() error { return failed(c.Schedules.Pause(ctx, "n")) },
		"Schedules.Resume": func() error { return failed(c.Schedules.Resume(ctx, "n")) },
		"Schedules.Run":    func() error { return failed(c.Schedules.Run(ctx, "n")) },
		"Schedules.Ticks":  func() error { return first(c.Schedules.Ticks(ctx, "n")) },
		"Hooks.List":       func() error { return failed(c.Hooks.List(ctx)) },
		"Workers.List":     func() error { return failed(c.Workers.List(ctx)) },
		"Workers.Drain":    func() error { return failed(c.Workers.Drain(ctx, "w")) },
		"Workers.Undrain":  func() error { return failed(c.Workers.Undrain(ctx, "w")) },
		"JobTypes.List":    func() error { return failed(c.JobTypes.List(ctx)) },
		"JobTypes.Get":     func() error { return failed(c.JobTypes.Get(ctx, "A")) },
		"JobTypes.Delete":  func() error { return c.JobTypes.Delete(ctx, "A") },
		"Installation.Me":  func() error { return failed(c.Installation.Me(ctx)) },
		"Installation.Lag": func() error { return failed(c.Installation.Lag(ctx)) },
		"Keys.Create": func() error {
			return failed(c.Keys.Create(ctx, client.KeyRequest{}))
		},
		"Keys.List":   func() error { return first(c.Keys.List(ctx, "")) },
		"Keys.Get":    func() error { return failed(c.Keys.Get(ctx, "k")) },
		"Keys.Revoke": func() error { return failed(c.Keys.Revoke(ctx, "k")) },
		"Keys.Rotate": func() error { return failed(c.Keys.Rotate(ctx, "k", time.Hour)) },
		"Rejected.List": func() error {
			return first(c.Rejected.List(ctx, client.RejectedFilter{}))
		},
		"Rejected.Get":     func() error { return failed(c.Rejected.Get(ctx, "i")) },
		"Rejected.Discard": func() error { return failed(c.Rejected.Discard(ctx, "i")) },
		"Rejected.Redrive": func() error { return failed(c.Rejected.Redrive(ctx, "i")) },
		"Installation.Stats": func() error {
			return failed(c.Installation.Stats(ctx, "q", ""))
		},
		"Installation.Owners": func() error { return failed(c.Installation.Owners(ctx, "o")) },
		"Installation.Health": func() error { return failed(c.Installation.Health(ctx)) },
		"Installation.WebhookSecrets": func() error {
			return failed(c.Installation.WebhookSecrets(ctx, ""))
		},
	}
}

// The TypeScript and Python clients have the same test: methods.json has the names for all three.
func TestEveryOperationOfTheContractHasItsMethod(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(root + "/clients/methods.json")
	if err != nil {
		t.Fatal(err)
	}
	var methods map[string]any
	if err := json.Unmarshal(text, &methods); err != nil {
		t.Fatal(err)
	}
	type operation struct{ method, path string }
	operations := map[string]operation{}
	for path, item := range contract(t).Paths.Map() {
		for method, o := range item.Operations() {
			operations[o.OperationID] = operation{method, path}
		}
	}
	if got, want := slices.Sorted(maps.Keys(methods)), slices.Sorted(maps.Keys(operations)); !slices.Equal(got, want) {
		t.Errorf("methods.json has %v, the contract %v", got, want)
	}
	uncalled := goCalls(t.Context(), client.New("", ""))
	for id, name := range methods {
		words, named := name.(string)
		if !named {
			continue
		}
		words = regexp.MustCompile(`(^|\.)[a-z]`).ReplaceAllStringFunc(words, strings.ToUpper)
		delete(uncalled, words)
		t.Run(words, func(t *testing.T) {
			t.Parallel()
			asked := make(chan operation, 10)
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				asked <- operation{r.Method, r.URL.EscapedPath()}
				w.WriteHeader(http.StatusNotFound)
			}))
			t.Cleanup(server.Close)
			c := client.New(server.URL, "")
			part, method, of := strings.Cut(words, ".")
			if is := reflect.ValueOf(c); !of && !is.MethodByName(part).IsValid() || of && !is.Elem().FieldByName(part).MethodByName(method).IsValid() {
				t.Error("there is no such method")
			}
			call := goCalls(t.Context(), c)[words]
			if call == nil {
				t.Fatal("it is not called here")
			}
			if err := call(); !errors.Is(err, client.ErrNotFound) {
				t.Errorf("got %v", err)
			}
			is, want := <-asked, operations[id]
			path := regexp.MustCompile(`\\\{\w+\\\}`).ReplaceAllString(regexp.QuoteMeta(want.path), "[^/]+")
			if is.method != want.method || !regexp.MustCompile("^"+path+"$").MatchString(is.path) {
				t.Errorf("it sends %v, not %v", is, want)
			}
		})
	}
	for name := range uncalled {
		t.Errorf("methods.json does not name %s", name)
	}
}
