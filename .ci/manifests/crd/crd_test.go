package crd_test

import (
	"maps"
	"strings"
	"testing"

	"github.com/jobweaver/jobweaver/ci/manifests/crd"
)

const user = `
apiVersion: kafka.strimzi.io/v1
kind: KafkaUser
metadata: {name: someone, namespace: jobweaver}
spec:
  authentication:
    type: scram-sha-512
`

const scaled = `
apiVersion: keda.sh/v1alpha1
kind: ScaledObject
metadata: {name: runjob, namespace: jobweaver}
spec:
  scaleTargetRef: {name: runjob}
  triggers:
  - type: kafka
    metadata:
      topic: run-job
      lagThreshold: "8"
`

func TestObjectsAreHeldAgainstTheirDefinitionsAsAnAPIServerDoes(t *testing.T) {
	t.Parallel()
	set, err := crd.Load()
	if err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct{ object, wrong string }{
		"a user of Strimzi": {object: user},
		"an unknown field": {
			object: user + "  authorisation: {type: simple}\n", wrong: "spec.authorisation: no such field",
		},
		"a value outside an enumeration": {
			object: user + "  authorization: {type: complicated}\n", wrong: "Unsupported value",
		},
		"a rule in CEL": {
			object: user + "    validityDays: 5\n    renewalDays: 2\n", wrong: "only with 'type: tls'",
		},
		"what KEDA scales":              {object: scaled},
		"a figure where a text must be": {object: scaled + "      activationLagThreshold: 1\n", wrong: "must be of type string"},
		"a schedule of backups without its cluster": {
			object: "apiVersion: postgresql.cnpg.io/v1\nkind: ScheduledBackup\nmetadata: {name: x}\nspec: {schedule: 0 0 0 * * *}",
			wrong:  "spec.cluster: Required value",
		},
	} {
		t.Run(name, func(t *testing.T) {
			refused(t, set.Check(t.Context(), []byte(test.object)), test.wrong)
		})
	}
}

func refused(t *testing.T, err error, because string) {
	t.Helper()
	switch {
	case because == "" && err != nil:
		t.Errorf("refused: %v", err)
	case because != "" && (err == nil || !strings.Contains(err.Error(), because)):
		t.Errorf("got %v, want a word of %q", err, because)
	}
}

func TestTriggersAreHeldAgainstWhatKEDAReads(t *testing.T) {
	t.Parallel()
	scalers, err := crd.LoadScalers()
	if err != nil {
		t.Fatal(err)
	}
	good := map[string]string{"bootstrapServers": "kafka:9093", "consumerGroup": "jobweaver-ingest", "tls": "enable"}
	for name, test := range map[string]struct {
		typ, name, value string
		authentication   []string
		wrong            string
	}{
		"as it should be":              {typ: "kafka", name: "lagThreshold", value: "9", authentication: []string{"username", "ca"}},
		"no scaler":                    {typ: "kafak", wrong: "no scaler"},
		"a name that is not read":      {typ: "kafka", name: "lagTreshold", value: "9", wrong: "does not read lagTreshold"},
		"a value that is none":         {typ: "kafka", name: "sasl", value: "scram", wrong: "not one of"},
		"a secret where it is no good": {typ: "kafka", name: "username", value: "keda", wrong: "does not read username"},
		"an authentication of nothing": {typ: "kafka", authentication: []string{"pasword"}, wrong: "does not read pasword"},
		"what is required":             {typ: "kafka", name: "consumerGroup", value: "-", wrong: "has no consumerGroup"},
	} {
		t.Run(name, func(t *testing.T) {
			metadata := maps.Clone(good)
			if test.name != "" {
				metadata[test.name] = test.value
			}
			if test.value == "-" {
				delete(metadata, test.name)
			}
			refused(t, scalers.Check(test.typ, metadata, test.authentication), test.wrong)
		})
	}
}
