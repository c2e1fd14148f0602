package reportfile

import (
	"archive/zip"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/xuri/excelize/v2"
)

const (
	sheet       = "Report"
	maxXLSXRows = 1_048_576 // of a sheet, including its head
	sampled     = 200       // rows that determine the widths of columns
	maxDigits64 = 15        // digits that a spreadsheet's numbers keep
)

// xlsxFile is a sheet of typed cells. Its rows are written to a temporary file, since the workbook is assembled at the
// end.
type xlsxFile struct {
	w       io.Writer
	book    *excelize.File
	stream  *excelize.StreamWriter
	styles  xlsxStyles
	titles  []string
	columns int
	title   string
	line    int // the number of the next line

	sample [][]Cell // rows that wait until the widths are chosen; nil: they are chosen
	values []any
}

type xlsxStyles struct {
	title, head, total      int
	date, dateTime, instant int
	totalOf                 map[Total]int
}

func newXLSX(w io.Writer, title string, columns []Column) (_ *xlsxFile, err error) {
	f := &xlsxFile{
		w: w, book: excelize.NewFile(), titles: header(columns), columns: len(columns), title: title, line: 1,
		sample: make([][]Cell, 0, sampled), values: make([]any, len(columns)),
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, f.close())
		}
	}()
	// The workbook is written while it is assembled, not into memory first.
	f.book.SetZipWriter(func(io.Writer) excelize.ZipWriter { return zip.NewWriter(f.w) })
	if err := f.book.SetSheetName("Sheet1", sheet); err != nil {
		return nil, err
	}
	if err := f.book.SetDocProps(&excelize.DocProperties{Title: printable(title), Creator: "JobWeaver"}); err != nil {
		return nil, err
	}
	if f.stream, err = f.book.NewStreamWriter(sheet); err != nil {
		return nil, err
	}
	return f, f.makeStyles()
}

func (f *xlsxFile) makeStyles() error {
	s := &f.styles
	s.totalOf = map[Total]int{}
	var errs []error
	style := func(bold bool, size float64, format string, line bool) int {
		st := &excelize.Style{Font: &excelize.Font{Bold: bold, Size: size}}
		if format != "" {
			st.CustomNumFmt = &format
		}
		if line {
			st.Border = []excelize.Border{{Type: "top", Style: 1, Color: "000000"}}
		}
		id, err := f.book.NewStyle(st)
		errs = append(errs, err)
		return id
	}
	s.title = style(true, 14, "", false)
	s.date = style(false, 11, "yyyy\\-mm\\-dd", false)
	s.dateTime = style(false, 11, "yyyy\\-mm\\-dd\\ hh:mm:ss", false)
	s.instant = style(false, 11, "yyyy\\-mm\\-dd\\ hh:mm:ss\\Z", false)
	s.total = style(true, 11, "", true)
	for _, t := range []Total{Count, Avg, Min, Max} {
		s.totalOf[t] = style(true, 11, `"`+string(t)+` "General`, true)
	}
	id, err := f.book.NewStyle(&excelize.Style{
		Font:      &excelize.Font{Bold: true, Size: 11},
		Fill:      excelize.Fill{Type: "pattern", Pattern: 1, Color: []string{"E8ECF1"}},
		Border:    []excelize.Border{{Type: "bottom", Style: 1, Color: "8899AA"}},
		Alignment: &excelize.Alignment{Vertical: "center"},
	})
	s.head = id
	return errors.Join(append(errs, err)...)
}

func (f *xlsxFile) row(cells []Cell) error {
	if f.sample != nil {
		if len(f.sample) < sampled {
			f.sample = append(f.sample, append([]Cell(nil), cells...))
			return nil
		}
		if err := f.begin(); err != nil {
			return err
		}
	}
	return f.write(cells, 0)
}

// begin writes the lines above the rows, and the rows of the sample.
func (f *xlsxFile) begin() error {
	rows := f.sample
	f.sample = nil
	for i := range f.columns {
		width := utf8.RuneCountInString(f.titles[i])
		for _, cells := range rows {
			if i < len(cells) {
				width = max(width, min(utf8.RuneCountInString(cells[i].Text), 60))
			}
		}
		if err := f.stream.SetColWidth(i+1, i+1, float64(min(max(width, 6), 60)+2)); err != nil {
			return err
		}
	}
	head := make([]any, f.columns)
	for i, title := range f.titles {
		head[i] = excelize.Cell{StyleID: f.styles.head, Value: printable(title)}
	}
	err := f.stream.SetPanes(&excelize.Panes{
		Freeze: true, YSplit: 3, TopLeftCell: "A4", ActivePane: "bottomLeft",
	})
	if err != nil {
		return err
	}
	if err := f.stream.SetRow("A1", []any{excelize.Cell{StyleID: f.styles.title, Value: printable(f.title)}}); err != nil {
		return err
	}
	if err := f.stream.SetRow("A3", head, excelize.RowOpts{Height: 20}); err != nil {
		return err
	}
	f.line = 4
	for _, cells := range rows {
		if err := f.write(cells, 0); err != nil {
			return err
		}
	}
	return nil
}

func (f *xlsxFile) write(cells []Cell, style int) error {
	if f.line > maxXLSXRows {
		return fmt.Errorf("%w: an xlsx has at most %d rows", ErrLimit, maxXLSXRows-4)
	}
	for i := range f.values {
		f.values[i] = nil
		if i == len(cells) {
			break
		}
		var err error
		if f.values[i], err = f.value(cells[i], style); err != nil {
			return err
		}
	}
	err := f.stream.SetRow("A"+strconv.Itoa(f.line), f.values)
	f.line++
	return err
}

// value returns the cell with a type of the spreadsheet that keeps its whole value, or as text.
func (f *xlsxFile) value(c Cell, style int) (any, error) {
	dated := func(layout string, own int) (any, error) {
		at, err := time.Parse(layout, c.Text)
		if err != nil || at.Year() < 1901 || at.Year() > 9999 {
			return excelize.Cell{StyleID: style, Value: c.Text}, nil
		}
		return excelize.Cell{StyleID: own, Value: at}, nil
	}
	switch c.Kind {
	case Null:
		return nil, nil
	case Number:
		n, err := strconv.ParseFloat(c.Text, 64)
		digits := significant(c.Text)
		if err == nil && digits <= maxDigits64 && (n != 0 || digits == 0) { // 1e-400 would be 0
			return excelize.Cell{StyleID: style, Value: n}, nil
		}
	case Bool:
		return excelize.Cell{StyleID: style, Value: c.Text == "true"}, nil
	case Date:
		return dated(time.DateOnly, f.styles.date)
	case DateTime:
		return dated("2006-01-02T15:04:05", f.styles.dateTime)
	case Instant:
		return dated(time.RFC3339, f.styles.instant)
	case Text:
	}
	text := printable(c.Text)
	// The library would cut it.
	if len(text) > excelize.TotalCellChars && len(utf16.Encode([]rune(text))) > excelize.TotalCellChars {
		return nil, fmt.Errorf("%w: a cell of an xlsx has at most %d characters", ErrLimit, excelize.TotalCellChars)
	}
	return excelize.Cell{StyleID: style, Value: text}, nil
}

// significant returns the number of significant digits.
func significant(number string) int {
	mantissa, _, _ := strings.Cut(strings.ToLower(number), "e")
	mantissa = strings.TrimLeft(strings.Replace(strings.TrimLeft(mantissa, "+-"), ".", "", 1), "0")
	return len(strings.TrimRight(mantissa, "0"))
}

func (f *xlsxFile) total(cells []Cell, of []Total) error {
	if f.sample != nil {
		if err := f.begin(); err != nil {
			return err
		}
	}
	row := make([]any, len(cells))
	for i, c := range cells {
		style, named := f.styles.totalOf[of[i]]
		if !named || c.Kind != Number {
			style = f.styles.total
		}
		var err error
		if row[i], err = f.value(c, style); err != nil {
			return err
		}
		if row[i] == nil {
			row[i] = excelize.Cell{StyleID: style}
		}
	}
	if f.line > maxXLSXRows {
		return fmt.Errorf("%w: an xlsx has at most %d rows", ErrLimit, maxXLSXRows-4)
	}
	return f.stream.SetRow("A"+strconv.Itoa(f.line), row)
}

func (f *xlsxFile) end() error {
	if f.sample != nil {
		if err := f.begin(); err != nil {
			return err
		}
	}
	if err := f.stream.Flush(); err != nil {
		return err
	}
	_, err := f.book.WriteToBuffer() // the buffer stays empty: see newXLSX
	return err
}

// close removes the temporary file.
func (f *xlsxFile) close() error { return f.book.Close() }
