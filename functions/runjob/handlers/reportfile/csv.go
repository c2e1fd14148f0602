package reportfile

import (
	"bufio"
	"encoding/csv"
	"io"
	"regexp"
	"strings"
	"unicode/utf8"
)

// csvFile has a line of titles, the rows and, where one was asked for, a line of totals.
type csvFile struct {
	w      *csv.Writer
	buf    *bufio.Writer // that of w, which has no other
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

// line writes the fields. An empty line would be none for who reads the file: a row of one cell, without
// anything in it, needs quotes.
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

// byteOrderMark is taken for none of the text where a file begins with it.
const byteOrderMark = "\ufeff"

// harmless is text that no spreadsheet takes for a formula. Only text is changed: -1 is a number.
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

// afterSeparator is where a spreadsheet that splits by another separator than ours would begin a cell with a formula.
var afterSeparator = regexp.MustCompile("([;\\t\\n\\r|][ \"']*)([" + formulas[:2] + "\\-" + formulas[3:] + "])")
