package funchost

import (
	"slices"
	"testing"

	"github.com/jobweaver/jobweaver/shared/secret"
)

// No URL of a request may lead to these addresses.
func TestOwnPlacesHasTheAddressesOfTheProcess(t *testing.T) {
	t.Parallel()
	for sink, place := range map[string]string{
		"http://kafka-broker-ingress.knative-eventing.svc.cluster.local/jobweaver/jobweaver": "kafka-broker-ingress.knative-eventing.svc.cluster.local",
		"https://127.0.0.1/x": "127.0.0.1:443", "http://localhost:8090": "localhost:8090",
	} {
		env := &Env{}
		env.Config.Sink, env.Config.Kafka.Brokers = sink, []string{"kafka:9092"}
		env.Config.database = secret.Of("postgres://u:p@db1,db2:5433/jobweaver_api?sslmode=disable")
		want := []string{"kafka:9092", place, "db1:5432", "db2:5433"}
		if got := env.OwnPlaces(); !slices.Equal(got, want) {
			t.Errorf("%s: %q, not %q", sink, got, want)
		}
	}
}
