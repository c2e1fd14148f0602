package gateway_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
)

// The gateway accepts exactly the cursors and control names that match the contract.
func TestTheContractAndTheGatewayAgreeOnCursors(t *testing.T) {
	t.Parallel()
	h, tried := open(t), 0
	id := h.submit(plainJob).String()
	cursors := []string{
		id, strings.ToUpper(id), strings.ReplaceAll(id, "-", ""), "{" + id + "}", id + ".v1", id + ".v0", id + ".v+1", id + ".v01",
		id + ".v1000000000000000000", id + ".v999999999999999999", "1", "0", "-1", "+1", "01", "999999999999999999",
		"9223372036854775808", "1.0", "1.5", "0.5", "1.05", "1.2147483648", "2147483648.1", "1.", "nightly:", "nightly:acme",
		"nightly", ":acme", "Nightly:", "nightly:a:b", "nightly:" + strings.Repeat("ü", 255), "nightly:" + strings.Repeat("ü", 256),
		"nightly:a\tb", "nightly:a\u0085b", "0:", "17:acme", "017:acme", "2026-11-22T08:00:00Z", "2026-11-22T08:00:00.123456+01:00", "1969-12-31T23:59:59Z",
		"2026-11-22", "ccpcu5mlirwx", "ccpcu5mlirwX", "ccpcu5mlirw", "x",
	}
	for path, item := range loadContract(t).Paths.Map() {
		p := item.Get
		if p == nil || p.Parameters.GetByInAndName("query", "cursor") == nil {
			continue
		}
		schema := p.Parameters.GetByInAndName("query", "cursor").Schema.Value
		at := strings.NewReplacer("{jobId}", id, "{name}", "nightly", "{queue}", "default").Replace(path)
		for _, cursor := range cursors {
			tried++
			good := schema.VisitJSON(cursor, openapi3.EnableJSONSchema2020(), openapi3.EnableFormatValidation()) == nil
			r := h.do("GET", at+"?cursor="+url.QueryEscape(cursor), "")
			if good != (r.status != http.StatusBadRequest) {
				t.Errorf("%s, cursor %q: good by the contract: %t; answered %d %s", path, cursor, good, r.status, r.body)
			}
		}
	}
	if lists := 15; tried != lists*len(cursors) {
		t.Errorf("tried %d cursors, want %d of each of %d lists", tried, len(cursors), lists)
	}
}

func TestTheContractAndTheGatewayAgreeOnNamesOfControls(t *testing.T) {
	t.Parallel()
	h, schemas := open(t), loadContract(t).Components.Schemas
	for kind, schema := range map[string]string{"queue": "Queue", "type": "JobType", "owner": "Key"} {
		for _, name := range []string{
			"default", "Default", "0", "a-b", "a.b", "-", "a b", "ü", strings.Repeat("a", 63), strings.Repeat("a", 64),
			strings.Repeat("a", 100), strings.Repeat("a", 101), strings.Repeat("ü", 255), strings.Repeat("ü", 256),
			"a\tb", "a\u0085b", "a/b",
		} {
			good := schemas[schema].Value.VisitJSON(name, openapi3.EnableJSONSchema2020()) == nil
			r := h.do("GET", "/api/controls/"+kind+"/"+url.PathEscape(name), "")
			if good != (r.status == http.StatusOK) {
				t.Errorf("%s %q: good by the contract: %t; answered %d %s", kind, name, good, r.status, r.body)
			}
		}
	}
}
