package reportfile

import (
	"bufio"
	_ "embed" // the page
	"html/template"
	"io"
)

//go:embed page.html
var pageText string

// page has the templates around the rows: head and foot.
var page = template.Must(template.New("page").Parse(pageText))

// htmlFile is one self-contained page without scripts.
type htmlFile struct {
	w       *bufio.Writer
	columns int
	rows    int
	foot    []footCell
}

type footCell struct {
	Of     string // the kind of total, if the page shows it
	Text   string
	Number bool
}

func newHTML(w io.Writer, title string, columns []Column) (*htmlFile, error) {
	f := &htmlFile{w: bufio.NewWriterSize(w, 64<<10), columns: len(columns)}
	titles := header(columns)
	for i := range titles {
		titles[i] = printable(titles[i])
	}
	return f, page.ExecuteTemplate(f.w, "head", map[string]any{"Title": printable(title), "Columns": titles})
}

// row writes a row without a template, which would take most of the time: a cell is only escaped text.
func (f *htmlFile) row(cells []Cell) error {
	f.rows++
	_, _ = f.w.WriteString("<tr>") // the writer returns its error at the end of the row
	for i := range f.columns {
		if i >= len(cells) || cells[i].Kind == Null {
			_, _ = f.w.WriteString("<td>")
			continue
		}
		if cells[i].Kind == Number {
			_, _ = f.w.WriteString("<td class=n>")
		} else {
			_, _ = f.w.WriteString("<td>")
		}
		template.HTMLEscape(f.w, []byte(printable(cells[i].shown())))
	}
	_, err := f.w.WriteString("\n")
	return err
}

func (f *htmlFile) total(cells []Cell, of []Total) error {
	for i, c := range cells {
		cell := footCell{Text: printable(c.shown()), Number: c.Kind == Number}
		if of[i] != Sum && c.Kind != Null {
			cell.Of = string(of[i])
		}
		f.foot = append(f.foot, cell)
	}
	return nil
}

func (f *htmlFile) end() error {
	if err := page.ExecuteTemplate(f.w, "foot", map[string]any{"Foot": f.foot, "Rows": f.rows}); err != nil {
		return err
	}
	return f.w.Flush()
}

func (f *htmlFile) close() error { return nil }
