package handlers

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"unicode/utf8"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/jobweaver/jobweaver/functions/runjob/handlers/reportfile"
)

// Limits of a REPORT.
const (
	maxReportTitle = 200       // characters, also of a column's title
	maxReportCells = 5_000_000 // of rows in the payload: a few bytes can be many cells if each row has other keys
	maxReportText  = 32 << 20  // bytes of all cells: a value is repeated in each column of its name
)

type reportPayload struct {
	Title      string                    `json:"title"`
	Format     reportfile.Format         `json:"format"`
	Columns    []reportColumn            `json:"columns"`
	Rows       jsontext.Value            `json:"rows"`
	Query      string                    `json:"query"`
	Parameters map[string]jsontext.Value `json:"parameters"`
}

type reportColumn struct {
	Name  string           `json:"name"`
	Title string           `json:"title"`
	Total reportfile.Total `json:"total"`
}

// file returns the column as it is rendered.
func (c reportColumn) file() reportfile.Column {
	title := c.Title
	if title == "" {
		title = c.Name
	}
	return reportfile.Column{Title: title, Total: c.Total}
}

// payloadError is an error at a place in the payload.
func payloadError(path, format string, args ...any) error {
	return &reportProblem{"payload." + path + ": " + fmt.Sprintf(format, args...)}
}

type reportProblem struct{ text string }

func (p *reportProblem) Error() string { return p.text }

func parseReport(payload []byte) (*reportPayload, error) {
	p := &reportPayload{}
	if err := jsonv2.Unmarshal(payload, p, jsonv2.RejectUnknownMembers(true)); err != nil {
		return nil, &reportProblem{"payload: " + err.Error()}
	}
	switch {
	case p.Title == "":
		return nil, payloadError("title", "must not be empty")
	case utf8.RuneCountInString(p.Title) > maxReportTitle:
		return nil, payloadError("title", "must have at most %d characters", maxReportTitle)
	case p.Format.ContentType() == "":
		return nil, payloadError("format", "must be csv, xlsx, pdf or html")
	case (p.Rows == nil) == (p.Query == ""):
		return nil, payloadError("rows", "give either rows or the name of a query")
	case p.Rows != nil && p.Parameters != nil:
		return nil, payloadError("parameters", "are for a query")
	case p.Rows != nil && p.Rows.Kind() != '[':
		return nil, payloadError("rows", "must be a list")
	}
	return p, p.checkColumns()
}

func (p *reportPayload) checkColumns() error {
	if p.Columns != nil && len(p.Columns) == 0 || len(p.Columns) > reportfile.MaxColumns {
		return payloadError("columns", "must be 1 to %d", reportfile.MaxColumns)
	}
	for i, c := range p.Columns {
		path := "columns[" + strconv.Itoa(i) + "]"
		switch c.Total {
		case "", reportfile.Sum, reportfile.Count, reportfile.Avg, reportfile.Min, reportfile.Max:
		default:
			return payloadError(path+".total", "must be sum, count, avg, min or max")
		}
		if c.Name == "" || utf8.RuneCountInString(c.Name) > maxReportTitle {
			return payloadError(path+".name", "must have 1 to %d characters", maxReportTitle)
		}
		if utf8.RuneCountInString(c.Title) > maxReportTitle {
			return payloadError(path+".title", "must have at most %d characters", maxReportTitle)
		}
	}
	return nil
}

// inlineRows has the rows of a payload: lists, or objects whose keys name the columns.
type inlineRows struct {
	text    []byte
	named   bool           // the rows are objects
	names   []string       // keys in the order in which they first appear, or those of the requested columns
	index   map[string]int // of each key in names
	columns []reportColumn // nil: all
	count   int
}

// newInlineRows reads all rows once.
func newInlineRows(rows []byte, columns []reportColumn) (*inlineRows, error) {
	r := &inlineRows{text: rows, columns: columns, index: map[string]int{}}
	width := 0
	err := r.each(func(number int, row jsontext.Kind) error {
		if number == 0 {
			r.named = row == '{'
		}
		if row != '{' && row != '[' || (row == '{') != r.named {
			return payloadError("rows["+strconv.Itoa(number)+"]", "all rows must be lists, or all of them objects")
		}
		return nil
	}, func(number int, at int, name string, _ reportfile.Cell) error {
		if r.named && columns == nil {
			if _, known := r.index[name]; !known {
				r.index[name] = len(r.names)
				r.names = append(r.names, name)
			}
			at = len(r.names) - 1
		}
		width = max(width, at+1)
		if !r.named && columns != nil && at >= len(columns) {
			return payloadError("rows["+strconv.Itoa(number)+"]", "has more than %d cells, one a column", len(columns))
		}
		if width > reportfile.MaxColumns && columns == nil {
			return payloadError("rows", "have more than %d columns", reportfile.MaxColumns)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	r.nameColumns(width)
	if r.count*len(r.columns) > maxReportCells {
		return nil, payloadError("rows", "have more than %d cells", maxReportCells)
	}
	return r, nil
}

// nameColumns adds the columns that the payload does not name.
func (r *inlineRows) nameColumns(width int) {
	if r.columns != nil {
		for i := range r.columns {
			r.names = append(r.names, r.columns[i].Name)
		}
		return
	}
	r.columns = []reportColumn{}
	for _, name := range r.names {
		r.columns = append(r.columns, reportColumn{Name: name})
	}
	for i := len(r.columns); i < width; i++ {
		r.columns = append(r.columns, reportColumn{Name: "Column " + strconv.Itoa(i+1)})
	}
}

// each walks the rows: begin is called for each row, cell for each of its values.
func (r *inlineRows) each(
	begin func(row int, kind jsontext.Kind) error, cell func(row, at int, name string, c reportfile.Cell) error,
) error {
	d := jsontext.NewDecoder(bytes.NewReader(r.text))
	if _, err := d.ReadToken(); err != nil {
		return err
	}
	for r.count = 0; d.PeekKind() != ']'; r.count++ {
		kind := d.PeekKind()
		if err := begin(r.count, kind); err != nil {
			return err
		}
		if _, err := d.ReadToken(); err != nil {
			return err
		}
		for at := 0; d.PeekKind() != ']' && d.PeekKind() != '}'; at++ {
			name := ""
			if kind == '{' {
				key, err := d.ReadToken()
				if err != nil {
					return err
				}
				name = key.String()
			}
			value, err := d.ReadValue()
			if err != nil {
				return err
			}
			if err := cell(r.count, at, name, cellOf(value)); err != nil {
				return err
			}
		}
		if _, err := d.ReadToken(); err != nil {
			return err
		}
	}
	return nil
}

// cellOf returns the cell of a value. A number keeps its digits; a list or an object is shown as JSON.
func cellOf(value jsontext.Value) reportfile.Cell {
	switch kind := value.Kind(); {
	case kind == 'n':
		return reportfile.Cell{}
	case kind == 't' || kind == 'f':
		return reportfile.Cell{Kind: reportfile.Bool, Text: string(value)}
	case kind == '0':
		return reportfile.Cell{Kind: reportfile.Number, Text: string(value)}
	case kind == '"':
		var text string
		_ = json.Unmarshal(value, &text) // it was parsed before
		return reportfile.Cell{Kind: reportfile.Text, Text: text}
	default:
		compact := value.Clone()
		_ = compact.Compact()
		return reportfile.Cell{Kind: reportfile.Text, Text: string(compact)}
	}
}

// render writes all rows to the file, and reports the progress before each.
func (r *inlineRows) render(file *reportfile.File, report func(rows int) error) error {
	cells := make([]reportfile.Cell, len(r.columns))
	text := 0
	places := map[string][]int{} // more than one column may have the same name
	for i, name := range r.names {
		places[name] = append(places[name], i)
	}
	flush := func(row int) error {
		if row == 0 {
			return nil
		}
		err := errors.Join(report(row), file.Row(cells))
		clear(cells)
		return err
	}
	err := r.each(func(row int, _ jsontext.Kind) error { return flush(row) },
		func(_, at int, name string, c reportfile.Cell) error {
			if !r.named {
				cells[at] = c
				return nil
			}
			if text += len(c.Text) * len(places[name]); text > maxReportText {
				return payloadError("rows", "make more than %d bytes, by columns of the same name", maxReportText)
			}
			for _, place := range places[name] {
				cells[place] = c
			}
			return nil
		})
	if err != nil {
		return err
	}
	return flush(r.count)
}
