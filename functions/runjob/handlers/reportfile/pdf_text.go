package reportfile

import (
	"strings"
	"unicode"
)

// paper returns text as the font can show it: the font has only the first 65,536 characters.
func paper(text string) string {
	text = strings.ReplaceAll(printable(text), "\t", "    ")
	return strings.Map(func(r rune) rune {
		if r > 0xffff {
			return '\ufffd'
		}
		return r
	}, text)
}

// cut returns the beginning of a long text.
func cut(text string) string {
	if len(text) <= pdfLongest {
		return text
	}
	if runes := []rune(text); len(runes) > pdfLongest {
		return string(runes[:pdfLongest]) + "…"
	}
	return text
}

// wrap breaks text into a bounded number of lines of a width, between words if it can. An ellipsis shows that text was
// left out.
func (f *pdfFile) wrap(text string, width float64, most int) []string {
	text = cut(text)
	if !strings.Contains(text, "\n") && f.doc.GetStringWidth(text) <= width {
		return []string{text}
	}
	var lines []string
	for paragraph := range strings.SplitSeq(text, "\n") {
		for rest := []rune(paragraph); ; {
			n, next := f.fits(rest, width)
			if lines = append(lines, string(rest[:n])); len(lines) > most {
				return f.ellipsis(lines[:most], width)
			}
			if rest = rest[next:]; len(rest) == 0 {
				break
			}
		}
	}
	return lines
}

// fits returns how much of the text fits on a line, at least one character, and where the next line begins.
func (f *pdfFile) fits(text []rune, width float64) (n, next int) {
	used, blank := 0.0, -1
	for i, r := range text {
		if unicode.IsSpace(r) {
			blank = i
		}
		used += f.doc.GetStringWidth(string(r))
		if used <= width || i == 0 {
			continue
		}
		if blank > 0 {
			return blank, blank + 1
		}
		return i, i
	}
	return len(text), len(text)
}

// ellipsis lets the last line end with three dots.
func (f *pdfFile) ellipsis(lines []string, width float64) []string {
	last := []rune(lines[len(lines)-1])
	for len(last) > 0 && f.doc.GetStringWidth(string(last)+"…") > width {
		last = last[:len(last)-1]
	}
	lines[len(lines)-1] = string(last) + "…"
	return lines
}
