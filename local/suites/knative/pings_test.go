package knative

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/cloudevents/sdk-go/v2/event"
	cehttp "github.com/cloudevents/sdk-go/v2/protocol/http"
	"github.com/google/uuid"

	"github.com/jobweaver/jobweaver/shared/cronspec"
	"github.com/jobweaver/jobweaver/shared/retry"
)

const (
	typePing     = "dev.knative.sources.ping"
	pingTries    = 6
	pingBackoff  = 50 * time.Millisecond
	pingPatience = 5 * time.Second
)

// pingSource sends an event at each instant of its schedule. An event that is not accepted after five retries is
// dropped.
type pingSource struct {
	of     object
	when   cronspec.Spec
	source string
	to     string
}

func newPingSource(o object, namespace, to string) (*pingSource, error) {
	when, err := cronspec.Parse(o.Spec.Schedule, time.UTC, time.Time{})
	if err != nil {
		return nil, fmt.Errorf("schedule of PingSource %s: %w", o.Metadata.Name, err)
	}
	source := "/apis/v1/namespaces/" + namespace + "/pingsources/" + o.Metadata.Name
	return &pingSource{of: o, when: when, source: source, to: to}, nil
}

// run sends until ctx ends.
func (p *pingSource) run(ctx context.Context, client *http.Client) {
	for now := time.Now(); ; {
		next := p.when.Next(now)
		if next.IsZero() || !retry.Pause(ctx, time.Until(next)) {
			return
		}
		now = next
		p.send(ctx, client)
	}
}

func (p *pingSource) send(ctx context.Context, client *http.Client) {
	e := event.New()
	e.SetID(uuid.NewString())
	e.SetType(typePing)
	e.SetSource(p.source)
	if data := p.of.Spec.PingData; data != "" {
		_ = e.SetData(p.of.Spec.ContentType, []byte(data))
	}
	for name, value := range p.of.Spec.CEOverrides.Extensions {
		e.SetExtension(name, value)
	}
	for n := range pingTries {
		if n > 0 && !retry.Pause(ctx, pingBackoff<<(n-1)) {
			return
		}
		req, err := cehttp.NewHTTPRequestFromEvent(ctx, p.to, e)
		if err != nil {
			return
		}
		res, err := client.Do(req)
		if err != nil {
			continue
		}
		_ = res.Body.Close()
		if res.StatusCode/100 == 2 || !isRetried(res.StatusCode) {
			return
		}
	}
}
