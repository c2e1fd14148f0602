package reportfile_test

import (
	"strings"
	"testing"

	rf "github.com/jobweaver/jobweaver/functions/runjob/handlers/reportfile"
)

// Where a file begins with a byte order mark, a spreadsheet takes what follows for the beginning.
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
