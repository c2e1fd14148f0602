package observability

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
)

const infra = "../../../infra"

// rule is a rule of rules.yml or alerts.yml.
type rule struct {
	Record, Alert, Expr string
	Labels, Annotations map[string]string
}

func rulesOf(t *testing.T, name string) (rules []rule) {
	t.Helper()
	var file struct{ Groups []struct{ Rules []rule } }
	read(t, filepath.Join(infra, "prometheus", name), func(text []byte) error { return yaml.Unmarshal(text, &file) })
	for _, group := range file.Groups {
		rules = append(rules, group.Rules...)
	}
	if len(rules) == 0 {
		t.Fatalf("%s has no rules", name)
	}
	return rules
}

// panelQuery is a query of a dashboard's panel.
type panelQuery struct{ dashboard, panel, expr string }

func panelQueries(t *testing.T) (queries []panelQuery) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(infra, "grafana/dashboards/*.json"))
	if err != nil || len(files) == 0 {
		t.Fatalf("%d dashboards, %v", len(files), err)
	}
	for _, name := range files {
		var d struct {
			Panels []struct {
				Title, Type string
				Targets     []struct{ Expr string }
			}
		}
		read(t, name, func(text []byte) error { return json.Unmarshal(text, &d) })
		for _, p := range d.Panels {
			if p.Type != "row" && len(p.Targets) == 0 {
				t.Errorf("%s: panel %q asks nothing", name, p.Title)
			}
			for _, target := range p.Targets {
				queries = append(queries, panelQuery{filepath.Base(name), p.Title, target.Expr})
			}
		}
	}
	return queries
}

func read(t *testing.T, name string, decode func([]byte) error) {
	t.Helper()
	text, err := os.ReadFile(name)
	if err == nil {
		err = decode(text)
	}
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
}

var (
	documentedRow = regexp.MustCompile("(?m)^\\| (`jobweaver_[^|]*)\\|([^|]*)\\|")
	quoted        = regexp.MustCompile("`([a-z_0-9]+)`")
)

// documented returns the metrics of docs/observability.md, with their labels.
func documented(t *testing.T) map[string][]string {
	t.Helper()
	metrics := map[string][]string{}
	read(t, "../../../docs/observability.md", func(text []byte) error {
		for _, row := range documentedRow.FindAllStringSubmatch(string(text), -1) {
			labels := strings.FieldsFunc(row[2], func(r rune) bool { return r == ',' || r == ' ' })
			slices.Sort(labels)
			for _, name := range quoted.FindAllStringSubmatch(row[1], -1) {
				metrics[name[1]] = labels
			}
		}
		return nil
	})
	if len(metrics) < 10 {
		t.Fatalf("docs/observability.md has %d metrics", len(metrics))
	}
	return metrics
}

// metricName finds JobWeaver's own and recorded metrics in a query.
var metricName = regexp.MustCompile(`[a-z_]+:jobweaver_\w+:\w+|\bjobweaver_[a-z_0-9]+\b`)

func TestQueriesUseExistingMetrics(t *testing.T) {
	t.Parallel()
	metrics, recorded := documented(t), map[string]bool{}
	for _, r := range rulesOf(t, "rules.yml") {
		recorded[r.Record] = true
	}
	check := func(where, expr string) {
		for _, name := range metricName.FindAllString(expr, -1) {
			base := name
			for _, suffix := range []string{"_bucket", "_sum", "_count"} {
				base = strings.TrimSuffix(base, suffix)
			}
			_, itself := metrics[name]
			if _, parts := metrics[base]; !itself && !parts && !recorded[name] {
				t.Errorf("%s asks for %s, which docs/observability.md does not have", where, name)
			}
		}
	}
	for _, name := range []string{"rules.yml", "alerts.yml"} {
		for _, r := range rulesOf(t, name) {
			check(name+": "+r.Record+r.Alert, r.Expr)
		}
	}
	for _, q := range panelQueries(t) {
		check(q.dashboard+": "+q.panel, q.expr)
	}
}

func TestEachAlertHasARunbookAndIsTestedBothWays(t *testing.T) {
	t.Parallel()
	var runbooks string
	read(t, "../../../docs/runbooks.md", func(text []byte) error { runbooks = string(text); return nil })
	fires, rests := tested(t)
	alerts := map[string]bool{}
	for _, r := range rulesOf(t, "alerts.yml") {
		alerts[r.Alert] = true
		if !strings.Contains(runbooks, "\n## "+r.Alert+"\n") {
			t.Errorf("%s has no runbook", r.Alert)
		}
		if url := r.Annotations["runbook_url"]; !strings.HasSuffix(url, "/docs/runbooks.md#"+strings.ToLower(r.Alert)) {
			t.Errorf("%s: runbook_url is %q", r.Alert, url)
		}
		if !slices.Contains([]string{"page", "ticket"}, r.Labels["severity"]) || r.Annotations["summary"] == "" {
			t.Errorf("%s: severity %q, summary %q", r.Alert, r.Labels["severity"], r.Annotations["summary"])
		}
		if !fires[r.Alert] || !rests[r.Alert] {
			t.Errorf("%s is tested where it fires: %v, and where it does not: %v", r.Alert, fires[r.Alert], rests[r.Alert])
		}
	}
	for _, section := range regexp.MustCompile(`(?m)^## (\w+)$`).FindAllStringSubmatch(runbooks, -1) {
		if !alerts[section[1]] {
			t.Errorf("the runbook of %s has no alert", section[1])
		}
	}
}

// tested returns the alerts that alerts_test.yml expects to fire, and not to fire.
func tested(t *testing.T) (fires, rests map[string]bool) {
	t.Helper()
	var file struct {
		Tests []struct {
			Cases []struct {
				Alertname string
				Alerts    []any `yaml:"exp_alerts"`
			} `yaml:"alert_rule_test"`
		}
	}
	read(t, filepath.Join(infra, "prometheus/alerts_test.yml"), func(text []byte) error { return yaml.Unmarshal(text, &file) })
	fires, rests = map[string]bool{}, map[string]bool{}
	for _, test := range file.Tests {
		for _, c := range test.Cases {
			fires[c.Alertname] = fires[c.Alertname] || len(c.Alerts) > 0
			rests[c.Alertname] = rests[c.Alertname] || len(c.Alerts) == 0
		}
	}
	return fires, rests
}
