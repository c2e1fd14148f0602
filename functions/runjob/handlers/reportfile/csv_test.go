package reportfile_test

import (
	"strings"
	"testing"

	rf "github.com/jobweaver/jobweaver/functions/runjob/handlers/reportfile"
)

// A spreadsheet skips a byte order mark at the beginning of a file, and then reads what follows it as the first cell.
func TestAByteOrderMarkHidesNoFormula(t *testing.T) {
	t.Parallel()
	page := render(t, rf.CSV, "Report", []rf.Column{{Title: "\ufeff=1+1"}}, []rf.Cell{text("\ufeff\ufeff@SUM(A1)")}, []rf.Cell{text("\ufeffplain")})
	if got, want := string(page), "'\ufeff=1+1\n'\ufeff\ufeff@SUM(A1)\n\ufeffplain\n"; got != want {
		t.Errorf("%q, not %q", got, want)
	}
	if !strings.HasPrefix(string(page), "'") {
		t.Error("it begins with the mark")
	}
}
