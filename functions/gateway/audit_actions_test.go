package gateway

import (
	"net/http"
	"testing"

	"github.com/jobweaver/jobweaver/functions/gateway/access"
	"github.com/jobweaver/jobweaver/functions/gateway/audit"
)

func TestEachRouteThatChangesSomethingHasAnAuditAction(t *testing.T) {
	t.Parallel()
	actions, reads := audit.Actions()
	routes := map[string]bool{}
	for _, r := range (&Function{}).routes() {
		route := r.method + " " + r.path
		routes[route] = true
		isWorker := r.needs == access.Work && r.method == http.MethodPost // the history of a job has the outcomes of its attempts
		if changes := r.method != http.MethodGet && !isWorker && (r.needs != access.Public || r.path == hookPath); changes != (actions[route] != "") {
			t.Errorf("%s changes something: %v; its action is %q", route, changes, actions[route])
		}
	}
	for _, named := range []map[string]string{actions, reads} {
		for route := range named {
			if !routes[route] {
				t.Errorf("%s is no route", route)
			}
		}
	}
}
