package handlers

import (
	"encoding/json"
	"strconv"
	"time"

	"github.com/jobweaver/jobweaver/functions/runjob/handlers/reportdb"
	"github.com/jobweaver/jobweaver/functions/runjob/handlers/reportfile"
)

// query renders the rows of a named query.
func (r *reportRun) query(db *reportdb.Store) error {
	var kinds []reportfile.Kind // of the report's columns
	var from []int              // for each of them, the column of the result that it shows
	var cells []reportfile.Cell
	given := map[string]json.RawMessage{}
	for name, value := range r.payload.Parameters {
		given[name] = json.RawMessage(value)
	}
	return db.Run(r.ctx, r.payload.Query, r.attempt.OwnerID, given, r.attempt.Timeout, reportdb.Rows{
		Columns: func(columns []reportdb.Column) (err error) {
			var shown []reportColumn
			if shown, from, err = r.choose(columns); err != nil {
				return err
			}
			for _, i := range from {
				kinds = append(kinds, kindsOf[columns[i].Kind])
			}
			cells = make([]reportfile.Cell, len(from))
			return r.begin(shown)
		},
		Row: func(values []reportdb.Value) error {
			if err := r.progress(r.report.Rows()); err != nil {
				return err
			}
			for i, at := range from {
				cells[i] = queryCell(kinds[i], values[at])
			}
			return r.report.Row(cells)
		},
	})
}

// choose finds the requested columns in the result; all if none is requested.
func (r *reportRun) choose(columns []reportdb.Column) (shown []reportColumn, from []int, err error) {
	if r.payload.Columns == nil {
		for i, c := range columns {
			shown, from = append(shown, reportColumn{Name: c.Name}), append(from, i)
		}
		return shown, from, nil
	}
	places := map[string]int{}
	for i, c := range columns {
		if _, taken := places[c.Name]; !taken {
			places[c.Name] = i
		}
	}
	for i, c := range r.payload.Columns {
		at, known := places[c.Name]
		if !known {
			return nil, nil, payloadError("columns["+strconv.Itoa(i)+"].name", "the query has no column %q", c.Name)
		}
		from = append(from, at)
	}
	return r.payload.Columns, from, nil
}

var kindsOf = map[reportdb.Kind]reportfile.Kind{
	reportdb.Text: reportfile.Text, reportdb.Number: reportfile.Number, reportdb.Bool: reportfile.Bool,
	reportdb.Date: reportfile.Date, reportdb.DateTime: reportfile.DateTime, reportdb.Instant: reportfile.Instant,
}

// queryCell returns the cell of a database value. Values that other formats cannot express become text: NaN, infinity,
// the year 44 BC.
func queryCell(kind reportfile.Kind, value reportdb.Value) reportfile.Cell {
	layout := ""
	switch kind {
	case reportfile.Number:
		if !reportfile.IsDecimal(value.Text) {
			kind = reportfile.Text
		}
	case reportfile.Date:
		layout = time.DateOnly
	case reportfile.DateTime:
		layout = "2006-01-02T15:04:05"
	case reportfile.Instant:
		layout = time.RFC3339
	case reportfile.Null, reportfile.Text, reportfile.Bool:
	}
	if value.Null {
		return reportfile.Cell{}
	}
	if layout != "" {
		if _, err := time.Parse(layout, value.Text); err != nil {
			kind = reportfile.Text
		}
	}
	return reportfile.Cell{Kind: kind, Text: value.Text}
}
