package reportfile

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"codeberg.org/go-pdf/fpdf"
	"github.com/go-fonts/dejavu/dejavusanscondensed"
	"github.com/go-fonts/dejavu/dejavusanscondensedbold"
)

// A PDF is built in memory, which these limits bound.
const (
	MaxPDFRows    = 50_000
	MaxPDFCells   = 300_000
	MaxPDFColumns = 40
)

// In millimetres, except font sizes, which are in points.
const (
	pdfFont    = "dejavu"
	pdfMargin  = 12.0
	pdfPad     = 1.5
	pdfSize    = 8.5
	pdfSmall   = 6.5 // if the columns do not fit
	pdfWidest  = 75.0
	pdfWord    = 30.0 // of the longest word that is not broken if there is little room
	pdfLines   = 6    // of one cell
	pdfLongest = 600  // characters of a cell that are measured
)

// pdfFile is a table on A4 in portrait format, or in landscape format if the columns need it.
type pdfFile struct {
	w      io.Writer
	doc    *fpdf.Fpdf
	title  string
	titles []string
	rows   int

	sample [][]Cell // rows that wait until the widths are chosen; nil: they are chosen
	widths []float64
	right  []bool   // whether each column has numbers
	named  []string // the text before the total of each column
	height float64  // of a line
	size   float64
	lines  [][]string // of each cell of the current row
}

func newPDF(w io.Writer, title string, columns []Column) (*pdfFile, error) {
	if len(columns) > MaxPDFColumns {
		return nil, fmt.Errorf("%w: a pdf has at most %d columns, not %d", ErrLimit, MaxPDFColumns, len(columns))
	}
	f := &pdfFile{
		w: w, title: paper(title), titles: header(columns), sample: make([][]Cell, 0, sampled),
		lines: make([][]string, len(columns)), right: make([]bool, len(columns)), named: make([]string, len(columns)),
	}
	for i, column := range columns {
		f.titles[i] = paper(f.titles[i])
		if column.Total != "" && column.Total != Sum {
			f.named[i] = string(column.Total) + " "
		}
	}
	return f, nil
}

func (f *pdfFile) row(cells []Cell) error {
	f.rows++
	if f.rows > MaxPDFRows || f.rows*len(f.titles) > MaxPDFCells {
		return fmt.Errorf("%w: a pdf has at most %d rows and %d cells", ErrLimit, MaxPDFRows, MaxPDFCells)
	}
	if f.sample != nil {
		if len(f.sample) < sampled {
			f.sample = append(f.sample, append([]Cell(nil), cells...))
			return nil
		}
		f.begin()
	}
	f.draw(cells)
	return f.doc.Error()
}

// begin chooses the page and the widths of the columns, and draws the rows of the sample.
func (f *pdfFile) begin() {
	rows := f.sample
	f.sample = nil
	across := f.layOut(rows)
	f.open(across)
	for _, cells := range rows {
		f.draw(cells)
	}
}

// layOut chooses the widths of the columns, and reports whether the page is in landscape format.
func (f *pdfFile) layOut(rows [][]Cell) bool {
	f.open(false) // to measure
	f.size = pdfSize
	wanted, least := f.wanted(rows)
	const upright, lying = 210 - 2*pdfMargin, 297 - 2*pdfMargin
	all := sum(wanted)
	room, across := upright, all > upright
	if across {
		room = lying
	}
	if all > room {
		f.size = pdfSmall
		wanted, least = f.wanted(rows)
	}
	f.widths = fit(wanted, least, room)
	f.height = f.size * 0.5
	return across
}

// wanted returns the width that each column needs for its text, and the least width at which no word is broken.
func (f *pdfFile) wanted(rows [][]Cell) (wanted, least []float64) {
	wanted, least = make([]float64, len(f.titles)), make([]float64, len(f.titles))
	measure := func(i int, text string) {
		text = cut(text)
		for line := range strings.SplitSeq(text, "\n") {
			wanted[i] = min(max(wanted[i], f.doc.GetStringWidth(line)+2*pdfPad+0.2, 8), pdfWidest)
		}
		for word := range strings.FieldsSeq(text) {
			least[i] = min(max(least[i], f.doc.GetStringWidth(word)+2*pdfPad+0.2), pdfWord, wanted[i])
		}
	}
	f.doc.SetFont(pdfFont, "B", f.size)
	for i, title := range f.titles {
		measure(i, title)
	}
	f.doc.SetFont(pdfFont, "", f.size)
	for _, cells := range rows {
		for i := range min(len(cells), len(wanted)) {
			measure(i, f.named[i]+paper(cells[i].shown()))
			f.right[i] = f.right[i] || cells[i].Kind == Number
		}
	}
	return wanted, least
}

// fit narrows the widest columns until all fit, and breaks words only if it must. If there is more room than needed,
// all columns get some of it.
func fit(wanted, least []float64, room float64) []float64 {
	widths := append([]float64(nil), wanted...)
	if all := sum(widths); all <= room {
		return scale(widths, min(room/all, 1.3))
	}
	least = append([]float64(nil), least...)
	shrink(least, nil, pdfWord, room)
	shrink(widths, least, pdfWidest, room)
	return scale(widths, min(room/sum(widths), 1))
}

// shrink narrows the widest columns until all fit, but none below its least width.
func shrink(widths, least []float64, widest, room float64) {
	for ; sum(widths) > room && widest > 1; widest *= 0.97 {
		for i := range widths {
			if least == nil || least[i] < widest {
				widths[i] = min(widths[i], widest)
			} else {
				widths[i] = min(widths[i], least[i])
			}
		}
	}
}

func scale(widths []float64, by float64) []float64 {
	for i := range widths {
		widths[i] *= by
	}
	return widths
}

func sum(widths []float64) (all float64) {
	for _, w := range widths {
		all += w
	}
	return all
}

// open begins the document.
func (f *pdfFile) open(across bool) {
	orientation := "P"
	if across {
		orientation = "L"
	}
	doc := fpdf.New(orientation, "mm", "A4", "")
	f.doc = doc
	doc.AddUTF8FontFromBytes(pdfFont, "", slices.Clone(dejavusanscondensed.TTF)) // a clone, because the library changes it
	doc.AddUTF8FontFromBytes(pdfFont, "B", slices.Clone(dejavusanscondensedbold.TTF))
	doc.SetTitle(f.title, true)
	doc.SetProducer("JobWeaver", true)
	doc.SetMargins(pdfMargin, pdfMargin, pdfMargin)
	doc.SetAutoPageBreak(false, 0)
	doc.AliasNbPages("{pages}")
	made := time.Now().UTC().Format("2006-01-02 15:04 UTC")
	doc.SetHeaderFunc(f.head)
	doc.SetFooterFunc(func() {
		doc.SetY(-10)
		doc.SetFont(pdfFont, "", 7)
		doc.SetTextColor(110, 120, 130)
		width, _ := doc.GetPageSize()
		half := width/2 - pdfMargin
		doc.CellFormat(half, 4, made, "", 0, "L", false, 0, "")
		doc.CellFormat(half, 4, fmt.Sprintf("%d / {pages}", doc.PageNo()), "", 0, "R", false, 0, "")
	})
	if f.widths != nil {
		doc.AddPage()
	}
}

// head draws the title and the titles of the columns, on every page.
func (f *pdfFile) head() {
	size, space := 9.0, 5.0
	if f.doc.PageNo() == 1 {
		size, space = 14, 8
	}
	f.doc.SetTextColor(25, 35, 45)
	f.doc.SetFont(pdfFont, "B", size)
	width, _ := f.doc.GetPageSize()
	for _, line := range f.wrap(f.title, width-2*pdfMargin, 3) {
		f.doc.CellFormat(0, space, line, "", 1, "L", false, 0, "")
	}
	f.doc.Ln(2)
	f.doc.SetFont(pdfFont, "B", f.size)
	f.doc.SetFillColor(232, 236, 241)
	f.doc.SetDrawColor(136, 153, 170)
	cells := make([]Cell, len(f.titles))
	for i, title := range f.titles {
		cells[i] = Cell{Text, title}
		if f.right[i] {
			cells[i].Kind = Number
		}
	}
	f.put(cells, f.breakLines(cells), true)
}

func (f *pdfFile) draw(cells []Cell) {
	f.look("", 216, 222, 230)
	lines := f.breakLines(cells)
	if f.pageFor(lines) {
		f.look("", 216, 222, 230)
	}
	f.put(cells, lines, false)
}

// look sets the style of rows, with lines of the given colour. Text in the fill colour takes fewer bytes.
func (f *pdfFile) look(style string, red, green, blue int) {
	f.doc.SetFont(pdfFont, style, f.size)
	f.doc.SetTextColor(25, 35, 45)
	f.doc.SetFillColor(25, 35, 45)
	f.doc.SetDrawColor(red, green, blue)
}

// pageFor begins a new page if the row does not fit on this one, and reports whether it did.
func (f *pdfFile) pageFor(lines int) bool {
	_, height := f.doc.GetPageSize()
	if f.doc.GetY()+f.rowHeight(lines) <= height-pdfMargin-2 {
		return false
	}
	rows := f.lines
	f.lines = make([][]string, len(rows)) // for the head
	f.doc.AddPage()
	f.lines = rows
	return true
}

func (f *pdfFile) rowHeight(lines int) float64 { return float64(lines)*f.height + 1.4 }

// breakLines fills f.lines, and returns the number of lines of the row.
func (f *pdfFile) breakLines(cells []Cell) int {
	most := 1
	for i := range f.lines {
		f.lines[i] = f.lines[i][:0]
		if i < len(cells) && cells[i].Kind != Null {
			f.lines[i] = f.wrap(paper(cells[i].shown()), f.widths[i]-2*pdfPad, pdfLines)
		}
		most = max(most, len(f.lines[i]))
	}
	return most
}

// put draws f.lines with a rule below.
func (f *pdfFile) put(cells []Cell, lines int, filled bool) {
	x, y := pdfMargin, f.doc.GetY()
	height := f.rowHeight(lines)
	if filled {
		f.doc.Rect(x, y, sum(f.widths), height, "F")
	}
	for i, column := range f.lines {
		align := "L"
		if i < len(cells) && cells[i].Kind == Number {
			align = "R"
		}
		for n, line := range column {
			f.doc.SetXY(x+pdfPad, y+0.7+float64(n)*f.height)
			f.doc.CellFormat(f.widths[i]-2*pdfPad, f.height, line, "", 0, align, false, 0, "")
		}
		x += f.widths[i]
	}
	f.doc.Line(pdfMargin, y+height, x, y+height)
	f.doc.SetXY(pdfMargin, y+height)
}

func (f *pdfFile) total(cells []Cell, _ []Total) error {
	if f.sample != nil {
		f.begin()
	}
	for i := range cells {
		if cells[i].Kind != Null {
			cells[i].Text = f.named[i] + cells[i].shown()
		}
	}
	f.look("B", 90, 100, 110)
	lines := f.breakLines(cells)
	f.pageFor(lines)
	f.look("B", 90, 100, 110)
	f.doc.Line(pdfMargin, f.doc.GetY(), pdfMargin+sum(f.widths), f.doc.GetY())
	f.put(cells, lines, false)
	return f.doc.Error()
}

func (f *pdfFile) end() error {
	if f.sample != nil {
		f.begin()
	}
	return f.doc.Output(f.w)
}

func (f *pdfFile) close() error { return nil }
