package reportfile

import "testing"

// A spreadsheet in another language splits lines at another separator.
func TestNoCellBehindAnotherSeparatorIsAFormula(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"=1": "'=1", "a;=1": "a;'=1", "a\t+1": "a\t'+1", "a\n@x": "a\n'@x", "a\r-x": "a\r'-x", "a|=1": "a|'=1", "a; =1;-b": "a; '=1;'-b",
		`a;"=1"`: `a;"'=1"`, "a;＝1": "a;'＝1", "\t=1": "'\t'=1",
		"a=b": "a=b", "a, b; c": "a, b; c", "1-2": "1-2", "-1.5": "-1.5", "": "", "x@example.org;y": "x@example.org;y",
	} {
		if got := harmless(text); got != want {
			t.Errorf("%q is written as %q, not %q", text, got, want)
		}
	}
}
