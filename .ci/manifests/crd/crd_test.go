package crd_test

import (
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
		"a field that nobody knows": {
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
