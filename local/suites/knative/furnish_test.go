package knative

import (
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"path/filepath"
	"strconv"
	"time"

	"github.com/jobweaver/jobweaver/migrations"
	"github.com/jobweaver/jobweaver/shared/client"
	"github.com/jobweaver/jobweaver/shared/pgtest"
)

// furnish starts Deployments and PingSources only after every object has its program, so that no event is missed.
func (h *fixture) furnish() {
	h.t.Helper()
	place := h.cluster()
	var deployed []program
	for _, o := range h.manifests {
		if !o.isServing() && o.Kind != "Deployment" {
			continue
		}
		p, err := h.programOf(place, o)
		if err != nil {
			h.t.Fatal(err)
		}
		if o.Kind == "Deployment" {
			deployed = append(deployed, p)
			continue
		}
		s := h.services[o.Metadata.Name]
		s.program, s.limit = p, o.Spec.Template.Spec.ContainerConcurrency
		s.min, s.max = min(o.scale("min-scale", 0), 1), min(o.scale("max-scale", mostReplicas), mostReplicas)
		h.services[s.name].open()
	}
	for _, s := range h.services {
		h.clock.Go(func() { s.scale(h.ctx) })
	}
	for _, p := range deployed {
		one, err := p.start(h.ctx, h.dir, 1)
		if err != nil {
			h.t.Fatal(err)
		}
		h.deployed = append(h.deployed, one)
	}
	h.api = client.New(h.gatewayURL(), h.key.Reveal())
	h.tick()
}

// scale returns a bound of a Knative Service; 0: none.
func (o object) scale(name string, otherwise int) int {
	n, err := strconv.Atoi(o.Spec.Template.Metadata.Annotations["autoscaling.knative.dev/"+name])
	if err != nil || n == 0 {
		return otherwise
	}
	return n
}

func (h *fixture) programOf(place cluster, o object) (program, error) {
	pod := o.Spec.Template.Spec
	env, err := place.environmentOf(o.Metadata.Name, pod)
	if err != nil {
		return program{}, err
	}
	grace := time.Duration(max(pod.TimeoutSeconds, pod.GraceSeconds)) * time.Second
	path := pod.Containers[0].ReadinessProbe.HTTPGet.Path
	if grace == 0 || path == "" {
		return program{}, fmt.Errorf("%s has no readiness probe, or no time to end: %q, %s", o.Metadata.Name, path, grace)
	}
	return program{function: o.Metadata.Name, env: env, ready: path, grace: grace}, nil
}

// cluster returns this machine's values for what the manifests name.
func (h *fixture) cluster() cluster {
	all := secrets{
		"jobweaver-gateway":  {"bootstrap-api-key": h.key.Reveal(), "callback-secrets": newSecret()},
		"jobweaver-webhooks": {"secrets": h.webhooks},
		"jobweaver-events":   {"keys": h.eventKey},
	}
	for _, set := range []migrations.Set{migrations.API, migrations.Scheduler, migrations.Worker} {
		for _, function := range set.Functions {
			all["jobweaver-database-"+function] = map[string]string{"url": pgtest.As(h.urls.Of(function), function)}
		}
	}
	return cluster{
		manifests: h.manifests, secrets: all, dir: h.dir,
		moved: map[string]string{"K_SINK": h.brokerURL(), "KAFKA_BROKERS": h.brokers[0], "KAFKA_REPLICATION_FACTOR": "1"},
		settings: map[string]string{
			"CALLBACK_URL": h.gatewayURL() + "/api/jobs/callback", "REPORT_BUCKET": "file://" + filepath.Join(h.dir, "reports"),
			"SMTP_HOST": h.mails.Host(), "SMTP_PORT": strconv.Itoa(h.mails.Port()), "SMTP_TLS": "none",
			"SMTP_FROM": "JobWeaver <jobweaver@example.org>", "OUTBOUND_ALLOW": "127.0.0.0/8",
		},
	}
}

func (h *fixture) gatewayURL() string {
	return h.addressOf(destination{Ref: &reference{"serving.knative.dev/v1", "Service", "gateway"}})
}

// brokerURL returns where functions publish events.
func (h *fixture) brokerURL() string {
	h.t.Helper()
	brokers := h.manifests.of("Broker")
	if len(brokers) != 1 {
		h.t.Fatalf("there are %d Brokers", len(brokers))
	}
	return h.addressOf(destination{Ref: &reference{brokers[0].APIVersion, "Broker", brokers[0].Metadata.Name}})
}

// newSecret returns a secret in the format of Standard Webhooks.
func newSecret() string {
	key := make([]byte, 32)
	_, _ = rand.Read(key) // never fails
	return "whsec_" + base64.StdEncoding.EncodeToString(key)
}
