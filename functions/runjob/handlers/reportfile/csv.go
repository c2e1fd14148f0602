package reportfile

import (
	"bufio"
	"encoding/csv"
	"io"
	"regexp"
	"strings"
	"unicode/utf8"
)

// csvFile writes a line of titles, the rows and, if requested, a line of totals.
type csvFile struct {
	w      *csv.Writer
	buf    *bufio.Writer // the buffer of w, which has no other
	fields []string
}

func newCSV(w io.Writer, columns []Column) (*csvFile, error) {
	buf := bufio.NewWriterSize(w, 64<<10)
	f := &csvFile{w: csv.NewWriter(buf), buf: buf, fields: header(columns)}
	for i, title := range f.fields {
		f.fields[i] = harmless(title)
	}
	return f, f.line()
}

func (f *csvFile) row(cells []Cell) error {
	for i := range f.fields {
		f.fields[i] = ""
		if i < len(cells) && cells[i].Kind == Text {
			f.fields[i] = harmless(cells[i].Text)
		} else if i < len(cells) {
			f.fields[i] = cells[i].Text
		}
	}
	return f.line()
}

// line writes the fields. A row with a single empty cell needs quotes: readers of CSV skip an empty line.
func (f *csvFile) line() error {
	if len(f.fields) == 1 && f.fields[0] == "" {
		_, err := f.buf.WriteString("\"\"\n")
		return err
	}
	return f.w.Write(f.fields)
}

func (f *csvFile) total(cells []Cell, _ []Total) error { return f.row(cells) }

func (f *csvFile) end() error {
	f.w.Flush()
	return f.w.Error()
}

func (f *csvFile) close() error { return nil }

// byteOrderMark at the beginning of a file is not part of the text.
const byteOrderMark = "\ufeff"

// harmless returns the cell as text that no spreadsheet treats as a formula. Numbers stay as they are: -1 is a number.
func harmless(text string) string {
	if text == "" || IsDecimal(text) {
		return text
	}
	first, _ := utf8.DecodeRuneInString(strings.TrimLeft(text, byteOrderMark))
	if strings.ContainsRune(formulas+"\t\r\n", first) {
		text = "'" + text
	}
	return afterSeparator.ReplaceAllString(text, "$1'$2")
}

const formulas = "=+-@＝＋－＠"

// afterSeparator matches a formula behind a separator: a spreadsheet that splits lines at another separator than this
// file's would begin a cell there.
var afterSeparator = regexp.MustCompile("([;\\t\\n\\r|][ \"']*)([" + formulas[:2] + "\\-" + formulas[3:] + "])")
