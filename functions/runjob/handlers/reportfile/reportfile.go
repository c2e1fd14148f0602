// Package reportfile writes rows as a report in CSV, XLSX, PDF or HTML, a source file each. It writes rows as they
// arrive, so that a report of any length takes little memory. Only a PDF is built in memory, and its size is bounded.
package reportfile

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode"
)

// Format is the format of a report, and the extension of its file.
type Format string

// The formats.
const (
	CSV  Format = "csv"
	XLSX Format = "xlsx"
	PDF  Format = "pdf"
	HTML Format = "html"
)

// ContentType returns the media type of the format; empty if there is no such format.
func (f Format) ContentType() string {
	switch f {
	case CSV:
		return "text/csv; charset=utf-8"
	case XLSX:
		return "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"
	case PDF:
		return "application/pdf"
	case HTML:
		return "text/html; charset=utf-8"
	default:
		return ""
	}
}

// MaxColumns is how many columns a report may have.
const MaxColumns = 1000

// ErrLimit is wrapped by the error about a report that is too large for its format.
var ErrLimit = errors.New("the report is too large")

// Kind is the kind of a cell's text.
type Kind uint8

// The kinds of cells.
const (
	Null     Kind = iota
	Text          // anything
	Number        // decimal digits, unchanged
	Bool          // true or false
	Date          // 2026-11-22
	DateTime      // 2026-11-22T08:00:00, without a time zone
	Instant       // 2026-11-22T08:00:00Z
)

// Cell is one value.
type Cell struct {
	Kind Kind
	Text string
}

// Column has the title of a column, and its total.
type Column struct {
	Title string
	Total Total
}

// File is a report that is being written.
type File struct {
	out    renderer
	totals []tally
	rows   int
}

// renderer writes one format. After an error only close is called.
type renderer interface {
	row(cells []Cell) error
	total(cells []Cell, of []Total) error
	end() error   // writes the rest
	close() error // releases what it holds
}

// New begins a report. It writes to w until Close or until ctx ends.
func New(ctx context.Context, w io.Writer, format Format, title string, columns []Column) (*File, error) {
	if len(columns) > MaxColumns {
		return nil, fmt.Errorf("%w: it has %d columns, %d are allowed", ErrLimit, len(columns), MaxColumns)
	}
	out, err := newRenderer(until{ctx, w}, format, oneLine(title), columns)
	if err != nil {
		return nil, err
	}
	return &File{out: out, totals: newTallies(columns)}, nil
}

func newRenderer(w io.Writer, format Format, title string, columns []Column) (renderer, error) {
	switch format {
	case CSV:
		return newCSV(w, columns)
	case XLSX:
		return newXLSX(w, title, columns)
	case PDF:
		return newPDF(w, title, columns)
	case HTML:
		return newHTML(w, title, columns)
	default:
		return nil, fmt.Errorf("there is no report format %q", format)
	}
}

// Row adds a row. Cells that are missing at its end are null. cells may be used again afterwards.
func (f *File) Row(cells []Cell) error {
	f.rows++
	for i := range min(len(cells), len(f.totals)) {
		if err := f.totals[i].add(cells[i]); err != nil {
			return fmt.Errorf("row %d, %w", f.rows, err)
		}
	}
	return f.out.row(cells)
}

// Rows returns the number of rows so far.
func (f *File) Rows() int { return f.rows }

// End writes the totals and the rest of the file.
func (f *File) End() error {
	cells, of, err := totals(f.totals)
	if err != nil {
		return err
	}
	if cells != nil {
		if err := f.out.total(cells, of); err != nil {
			return err
		}
	}
	return f.out.end()
}

// Close releases what the report holds. Without End before, the file is incomplete.
func (f *File) Close() error { return f.out.close() }

// until is a writer that returns an error once its context has ended.
type until struct {
	ctx context.Context
	w   io.Writer
}

func (u until) Write(p []byte) (int, error) {
	if err := context.Cause(u.ctx); err != nil {
		return 0, err
	}
	return u.w.Write(p)
}

// header returns the titles, each as one line.
func header(columns []Column) []string {
	titles := make([]string, len(columns))
	for i, c := range columns {
		titles[i] = oneLine(c.Title)
	}
	return titles
}

// oneLine replaces invisible characters by blanks.
func oneLine(text string) string {
	blank := func(r rune) bool { return unicode.IsControl(r) || unicode.IsSpace(r) }
	return strings.Join(strings.FieldsFunc(text, blank), " ")
}

// shown returns a cell as people read it.
func (c Cell) shown() string {
	if c.Kind == Instant || c.Kind == DateTime {
		return strings.Replace(c.Text, "T", " ", 1)
	}
	return c.Text
}

// printable returns text without characters that cannot be shown safely on paper and screens.
func printable(text string) string {
	bad := func(r rune) bool {
		return unicode.IsControl(r) && r != '\n' && r != '\t' || r == '\ufffe' || r == '\uffff'
	}
	if strings.IndexFunc(text, bad) < 0 {
		return text
	}
	text = strings.ReplaceAll(text, "\r\n", "\n")
	return strings.Map(func(r rune) rune {
		if bad(r) {
			return '\ufffd'
		}
		return r
	}, text)
}
