package client_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/jobweaver/jobweaver/shared/client"
)

type reservation struct {
	Total int `json:"total"`
	Items []struct {
		SKU      string `json:"sku"`
		FullName string `json:"full name"`
	} `json:"items"`
}

type box struct {
	SKU string `json:"sku"`
	N   int    `json:"n"`
}

var (
	reserving = client.Task[string, reservation]{Type: "RESERVE"}
	packing   = client.Task[box, int]{Type: "PACK"}
	shipping  = client.Task[map[string]any, any]{Type: "SHIP", Defaults: client.JobRequest{Debounce: &client.Debounce{Key: "k"}}}
)

func TestAFlowInCodeHasTheReferencesAndConditionsOfItsJobs(t *testing.T) {
	t.Parallel()
	flow := client.NewFlow(client.FlowRequest{Name: "order 17", IdempotencyKey: "17"})
	reserved := client.AddJob(flow, "reserve", &reserving, "17")
	charged := client.AddJob(flow, "charge", &charging, map[string]any{"orderId": "17", "cents": reserved.Output("total")})
	packed := client.AddEach(flow, "pack", &packing, reserved.Output("items"), map[string]any{
		"sku": client.Item{Path: "$.sku"}, "n": client.ItemIndex{},
	})
	client.AddJob(flow, "ship", &shipping, map[string]any{
		"receipt": charged.Output("receipt"), "boxes": []any{packed.Output()}, "note": reserved.Output("items", 0, "full name"),
	})
	client.AddJob(flow, "refund", &charging, charge{OrderID: "17"}, charged.Failed(), packed.Ended(), reserved.Completed())
	flow.Change("refund", func(r *client.JobRequest) { r.Priority = 9 })

	s := newScript(answer(http.StatusAccepted, `{"flowId": "f1"}`))
	if made, err := flow.Submit(t.Context(), s.client()); err != nil || made.FlowID != "f1" {
		t.Fatal(made, err)
	}
	var sent struct{ Jobs map[string]json.RawMessage }
	if err := json.Unmarshal([]byte(s.bodies[0]), &sent); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"reserve": `{"jobType":"RESERVE","payload":"17","queue":"pull"}`,
		"charge": `{"jobType":"CHARGE","payload":{"cents":{"$output":"reserve","path":"$.total"},"orderId":"17"},"queue":"pull",` +
			`"maxRetryCount":5,"tags":["shop"],"after":["reserve"]}`,
		"pack": `{"jobType":"PACK","payload":{"n":{"$item":"index"},"sku":{"$item":"value","path":"$.sku"}},"queue":"pull",` +
			`"forEach":{"$output":"reserve","path":"$.items"},"after":["reserve"]}`,
		"ship": `{"jobType":"SHIP","payload":{"boxes":[{"$output":"pack"}],` +
			`"note":{"$output":"reserve","path":"$.items[0]['full name']"},"receipt":{"$output":"charge","path":"$.receipt"}},"queue":"pull","after":["charge","pack","reserve"]}`,
		"refund": `{"jobType":"CHARGE","payload":{"orderId":"17","cents":0},"queue":"pull","priority":9,"maxRetryCount":5,"tags":["shop"],` +
			`"after":[{"name":"charge","on":"failed"},{"name":"pack","on":"ended"},{"name":"reserve","on":"completed"}]}`,
	} {
		if string(sent.Jobs[name]) != want {
			t.Errorf("%s is %s, not %s", name, sent.Jobs[name], want)
		}
	}
}

func TestAWrongFlowIsNotSubmitted(t *testing.T) {
	t.Parallel()
	flow := client.NewFlow(client.FlowRequest{})
	reserved := client.AddJob(flow, "reserve", &reserving, "17")
	client.AddJob(flow, "reserve", &reserving, 17)
	client.AddJob(flow, "a", &charging, map[string]any{"cent": reserved.Output("totl")})
	other := client.AddJob(client.NewFlow(client.FlowRequest{}), "elsewhere", &reserving, "18")
	client.AddJob(flow, "b", &shipping, map[string]any{"n": other.Output("items", "sku")}, other.Failed())
	s := newScript()
	_, err := flow.Submit(t.Context(), s.client())
	if err == nil || len(s.asked) > 0 {
		t.Fatalf("%v after %d requests", err, len(s.asked))
	}
	for _, want := range []string{
		"job reserve is there twice", "job reserve has a int as its payload, not a string or a map",
		"the output of reserve: client_test.reservation has no totl",
		"job a has a payload that has no cent and needs cents and needs orderId",
		"job b comes after elsewhere, which is not a job of this flow",
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%v lacks %q", err, want)
		}
	}
}
