package reportfile_test

import (
	"bytes"
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/xuri/excelize/v2"
	"go.uber.org/goleak"
	"golang.org/x/net/html"

	rf "github.com/jobweaver/jobweaver/functions/runjob/handlers/reportfile"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var formats = []rf.Format{rf.CSV, rf.XLSX, rf.PDF, rf.HTML}

func render(t *testing.T, format rf.Format, title string, columns []rf.Column, rows ...[]rf.Cell) []byte {
	t.Helper()
	var out bytes.Buffer
	file, err := rf.New(t.Context(), &out, format, title, columns)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := file.Close(); err != nil {
			t.Error(err)
		}
	}()
	for _, row := range rows {
		if err := file.Row(row); err != nil {
			t.Fatal(err)
		}
	}
	if err := file.End(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func text(s string) rf.Cell   { return rf.Cell{Kind: rf.Text, Text: s} }
func number(s string) rf.Cell { return rf.Cell{Kind: rf.Number, Text: s} }

func TestAWorkbookHasTypedCells(t *testing.T) {
	t.Parallel()
	columns := []rf.Column{
		{Title: "Who"}, {Title: "EUR", Total: rf.Sum}, {Title: "Mean", Total: rf.Avg}, {Title: "Yes", Total: rf.Count},
		{Title: "At", Total: rf.Max}, {Title: "Day"},
	}
	book, err := excelize.OpenReader(bytes.NewReader(render(t, rf.XLSX, "A <title> & more", columns,
		[]rf.Cell{
			text("=1+1"), number("12.50"), number("1"), {Kind: rf.Bool, Text: "true"},
			{Kind: rf.Instant, Text: "2026-11-22T08:00:00Z"}, {Kind: rf.Date, Text: "2026-11-22"},
		},
		[]rf.Cell{text("a\x00b\x1b"), number("12345678901234567"), number("2"), {}, {Kind: rf.Instant, Text: "0044-03-15T00:00:00Z"}, number("1e-400")},
	)))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = book.Close() }()
	for cell, want := range map[string]struct {
		kind excelize.CellType
		text string
	}{
		"A1": {excelize.CellTypeInlineString, "A <title> & more"},
		"A3": {excelize.CellTypeInlineString, "Who"},
		"A4": {excelize.CellTypeInlineString, "=1+1"},
		"B4": {excelize.CellTypeUnset, "12.5"},
		"D4": {excelize.CellTypeBool, "TRUE"},
		"E4": {excelize.CellTypeUnset, "2026-11-22 08:00:00Z"},
		"F4": {excelize.CellTypeUnset, "2026-11-22"},
		"A5": {excelize.CellTypeInlineString, "a\ufffdb\ufffd"},
		"B5": {excelize.CellTypeInlineString, "12345678901234567"},
		"D5": {excelize.CellTypeUnset, ""},
		"E5": {excelize.CellTypeInlineString, "0044-03-15T00:00:00Z"},
		"F5": {excelize.CellTypeInlineString, "1e-400"},
		"A6": {excelize.CellTypeInlineString, "Total"},
		"B6": {excelize.CellTypeInlineString, "12345678901234579.50"},
		"C6": {excelize.CellTypeUnset, "1.5"},
		"D6": {excelize.CellTypeUnset, "1"},
		"E6": {excelize.CellTypeUnset, "2026-11-22 08:00:00Z"},
	} {
		kind, err1 := book.GetCellType("Report", cell)
		got, err2 := book.GetCellValue("Report", cell)
		formula, err3 := book.GetCellFormula("Report", cell)
		if err := errors.Join(err1, err2, err3); err != nil || kind != want.kind || got != want.text || formula != "" {
			t.Errorf("%s: %v %q %q, %v, want %v %q", cell, kind, got, formula, err, want.kind, want.text)
		}
	}
	id, err1 := book.GetCellStyle("Report", "C6")
	style, err2 := book.GetStyle(id)
	if err := errors.Join(err1, err2); err != nil || style.CustomNumFmt == nil || *style.CustomNumFmt != `"avg "General` {
		t.Errorf("C6 is shown as %+v, %v", style, err)
	}
}

// The elements and the text of a page.
func read(t *testing.T, page []byte) (elements map[string]int, words string) {
	t.Helper()
	root, err := html.Parse(bytes.NewReader(page))
	if err != nil {
		t.Fatal(err)
	}
	elements = map[string]int{}
	var b strings.Builder
	for n := range root.Descendants() {
		if n.Type == html.ElementNode {
			elements[n.Data]++
		} else if n.Type == html.TextNode {
			b.WriteString(n.Data)
		}
	}
	return elements, b.String()
}

func TestAnHTMLReportEscapesItsCells(t *testing.T) {
	t.Parallel()
	hostile := `</td></title></style><script>alert(1)</script><img src=x onerror=alert(1)>&lt;`
	page := render(t, rf.HTML, hostile, []rf.Column{{Title: hostile}, {Title: "n", Total: rf.Sum}},
		[]rf.Cell{text(hostile), number("1")}, []rf.Cell{text("two\nlines\x00"), number("2.5")})
	elements, words := read(t, page)
	if elements["script"]+elements["img"]+elements["link"] > 0 || elements["tr"] != 4 || elements["td"] != 6 || elements["th"] != 2 {
		t.Errorf("elements %v", elements)
	}
	if strings.Count(words, hostile) != 4 || !strings.Contains(words, "two\nlines\ufffd") || !strings.Contains(words, "3.5") ||
		!strings.Contains(words, "2 rows") {
		t.Errorf("returned %s", words)
	}
}

// pdf has the output of pdftotext and pdfinfo.
func pdf(t *testing.T, page []byte) (words, info string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "x.pdf")
	if err := os.WriteFile(path, page, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := exec.LookPath("pdftotext"); err != nil {
		t.Skip("no pdftotext here")
	}
	text, err1 := exec.CommandContext(t.Context(), "pdftotext", "-layout", path, "-").Output()
	about, err2 := exec.CommandContext(t.Context(), "pdfinfo", path).Output()
	if err := errors.Join(err1, err2); err != nil {
		t.Fatal(err)
	}
	return string(text), string(about)
}

func TestAPDFHasTitlesOnEachPage(t *testing.T) {
	t.Parallel()
	columns := []rf.Column{{Title: "Kunde"}, {Title: "Betrag", Total: rf.Sum}, {Title: "Wann", Total: rf.Min}}
	rows := make([][]rf.Cell, 300)
	for i := range rows {
		rows[i] = []rf.Cell{text(fmt.Sprint("Zoë Ωμέγα Привет ", i)), number("0.1"), {Kind: rf.Date, Text: "2026-11-22"}}
	}
	words, info := pdf(t, render(t, rf.PDF, "Umsätze – Übersicht", columns, rows...))
	words = strings.ReplaceAll(words, " / ", "/") // versions of pdftotext differ
	for want, times := range map[string]int{
		"Umsätze – Übersicht": 7, "Betrag": 7, "Zoë Ωμέγα Привет 299": 1, "30.0": 1, "min 2026-11-22": 1, "7/7": 1,
	} {
		if got := strings.Count(words, want); got != times {
			t.Errorf("%q is there %d times, want %d, at the end\n%q", want, got, times, words[len(words)-200:])
		}
	}
	if !strings.Contains(info, "Umsätze – Übersicht") || !strings.Contains(info, "595.28 x 841.89 pts (A4)") {
		t.Errorf("info\n%s", info)
	}
}

func TestAPDFWithManyColumnsIsInLandscape(t *testing.T) {
	t.Parallel()
	columns, row := make([]rf.Column, 40), make([]rf.Cell, 40)
	for i := range columns {
		columns[i], row[i] = rf.Column{Title: fmt.Sprint("A title ", i)}, text(strings.Repeat("long ", 10_000))
	}
	words, info := pdf(t, render(t, rf.PDF, strings.Repeat("title ", 33), columns, row, row[:3]))
	if !strings.Contains(info, "841.89 x 595.28 pts (A4)") || !strings.Contains(words, "…") {
		t.Errorf("%s\n%s", info, words)
	}
}

func TestAWorkbookIsRefusedIfACellWouldBeCut(t *testing.T) {
	t.Parallel()
	for _, c := range []rf.Cell{
		text(strings.Repeat("x", excelize.TotalCellChars+1)), text(strings.Repeat("😀", excelize.TotalCellChars/2+1)),
	} {
		file, err := rf.New(t.Context(), &bytes.Buffer{}, rf.XLSX, "title", []rf.Column{{Title: "a"}})
		if err == nil {
			err = errors.Join(file.Row([]rf.Cell{c}), file.End(), file.Close())
		}
		if !errors.Is(err, rf.ErrLimit) {
			t.Errorf("%d bytes: %v", len(c.Text), err)
		}
	}
}

// Every format accepts any text, in many reports at once, since fonts and templates are shared.
func TestEveryFormatAcceptsAnyText(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", excelize.TotalCellChars)
	var all sync.WaitGroup
	for _, format := range formats {
		for _, s := range []string{
			"", " ", "\n\n\n", "../../../etc/passwd", "\x00\x01\x1b[31m\x7f", "\u202eabc", "😀\U0010ffff\U00010000", "日本語 العربية עברית",
			"=HYPERLINK(\"http://x\")", "]]></t></is>", "%s%d{pages}", "(\\) Tj ET", long, strings.Repeat("\n", 10_000), "\ufffe\uffff", "a\xffb",
		} {
			all.Go(func() {
				out := render(t, format, s, []rf.Column{{Title: s, Total: rf.Count}, {Title: s}},
					[]rf.Cell{text(s), number(strings.Repeat("9", 500))}, nil, []rf.Cell{{}, text(s)})
				if len(out) == 0 {
					t.Errorf("%s of %.20q is empty", format, s)
				}
				if format == rf.CSV {
					if _, err := csv.NewReader(bytes.NewReader(out)).ReadAll(); err != nil {
						t.Errorf("%.20q: %v", s, err)
					}
				}
			})
		}
		render(t, format, "nothing", nil)
		render(t, format, "nothing", nil, nil, nil)
		if _, err := rf.New(t.Context(), &bytes.Buffer{}, format, "", make([]rf.Column, rf.MaxColumns+1)); !errors.Is(err, rf.ErrLimit) {
			t.Errorf("%s of many columns: %v", format, err)
		}
	}
	all.Wait()
}

func TestTotalsAreExact(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		of   rf.Total
		want string
		of3  [3]string
	}{
		{rf.Sum, "0.3", [3]string{"0.1", "0.1", "0.1"}},
		{rf.Sum, "1000000000000000000000.01", [3]string{"1e21", "0.01", "0"}},
		{rf.Sum, "0.00", [3]string{"1.10", "-1.1", "0"}},
		{rf.Avg, "0.333333", [3]string{"1", "0", "0"}},
		{rf.Avg, "33333333333333333333.333333", [3]string{"99999999999999999999", "1", "0"}},
		{rf.Avg, "20", [3]string{"10", "20", "30"}},
		{rf.Min, "-1e-5", [3]string{"1", "-1e-5", "0"}},
		{rf.Max, "10", [3]string{"9", "10", "-11"}},
		{rf.Count, "3", [3]string{"9", "10", "-11"}},
	} {
		got := render(t, rf.CSV, "", []rf.Column{{Total: c.of}},
			[]rf.Cell{number(c.of3[0])}, []rf.Cell{{}}, []rf.Cell{text(c.of3[1])}, []rf.Cell{number(c.of3[2])})
		lines := strings.Fields(string(got))
		if last := lines[len(lines)-1]; last != c.want {
			t.Errorf("%s of %v is %s, want %s", c.of, c.of3, last, c.want)
		}
	}
}

func TestAReportEndsWithItsContext(t *testing.T) {
	t.Parallel()
	why := errors.New("because")
	for _, format := range formats {
		ctx, cancel := context.WithCancelCause(t.Context())
		file, err := rf.New(ctx, &bytes.Buffer{}, format, "T", []rf.Column{{Title: "a"}})
		if err != nil {
			t.Fatal(err)
		}
		cancel(why)
		if err := errors.Join(file.Row([]rf.Cell{text("x")}), file.End()); !errors.Is(err, why) {
			t.Errorf("%s: %v", format, err)
		}
		if err := file.Close(); err != nil {
			t.Errorf("%s: %v", format, err)
		}
	}
}
