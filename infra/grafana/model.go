package main

// dashboard describes a dashboard, row by row.
type dashboard struct {
	uid, title  string
	perFunction bool // it can be restricted to some functions with $function
	rows        []row
}

type row struct {
	title  string
	panels []panel // side by side
}

// panel is one graph, or with stat a single number.
type panel struct {
	title, help string
	unit        string // one of Grafana's unit names
	stat        bool
	queries     []query
}

type query struct{ expr, legend string }

const (
	columns = 24
	height  = 8
	// schema is the version of Grafana 11's dashboards.
	schema = 39
)

type object = map[string]any

// source is the data source of infra/grafana/provisioning.
var source = object{"type": "prometheus", "uid": "prometheus"}

func (d dashboard) model() object {
	panels, id, y := []object{}, 0, 0
	for _, r := range d.rows {
		id++
		panels = append(panels, object{
			"id": id, "type": "row", "title": r.title, "collapsed": false, "panels": []object{},
			"gridPos": object{"x": 0, "y": y, "w": columns, "h": 1},
		})
		y++
		width := columns / len(r.panels)
		for i, p := range r.panels {
			id++
			panels = append(panels, p.model(id, object{"x": i * width, "y": y, "w": width, "h": p.height()}))
		}
		y += r.panels[0].height()
	}
	return object{
		"uid": "jobweaver-" + d.uid, "title": "JobWeaver: " + d.title, "tags": []string{"jobweaver"},
		"schemaVersion": schema, "editable": false, "refresh": "30s", "timezone": "browser", "graphTooltip": 1,
		"time": object{"from": "now-1h", "to": "now"}, "panels": panels,
		"templating": object{"list": d.variables()}, "annotations": object{"list": []object{}},
		"links": []object{{
			"type": "dashboards", "tags": []string{"jobweaver"}, "title": "JobWeaver", "asDropdown": true, "keepTime": true,
		}},
	}
}

func (d dashboard) variables() []object {
	if !d.perFunction {
		return []object{}
	}
	const values = "label_values(jobweaver_build_info, function)"
	return []object{{
		"name": "function", "label": "Function", "type": "query", "datasource": source, "refresh": 2, "sort": 1,
		"query": object{"query": values, "refId": "function"}, "definition": values,
		"multi": true, "includeAll": true, "allValue": ".*",
		"current": object{"text": []string{"All"}, "value": []string{"$__all"}},
	}}
}

func (p panel) height() int {
	if p.stat {
		return height / 2
	}
	return height
}

func (p panel) model(id int, at object) object {
	var targets []object
	for i, q := range p.queries {
		targets = append(targets, object{
			"refId": string(rune('A' + i)), "datasource": source, "expr": q.expr, "legendFormat": q.legend, "range": true,
		})
	}
	model := object{
		"id": id, "type": "timeseries", "title": p.title, "description": p.help, "gridPos": at,
		"datasource": source, "targets": targets,
		"fieldConfig": object{
			"defaults": object{
				"unit": p.unit, "min": 0,
				"custom": object{"fillOpacity": 10, "showPoints": "never", "spanNulls": false},
			},
			"overrides": []object{},
		},
		"options": object{
			"legend":  object{"displayMode": "list", "placement": "bottom", "showLegend": true},
			"tooltip": object{"mode": "multi", "sort": "desc"},
		},
	}
	if p.stat {
		model["type"] = "stat"
		model["fieldConfig"] = object{"defaults": object{"unit": p.unit, "noValue": "0"}, "overrides": []object{}}
		model["options"] = object{
			"reduceOptions": object{"calcs": []string{"lastNotNull"}}, "colorMode": "none", "graphMode": "area",
		}
	}
	return model
}
