package reportfile

import (
	"errors"
	"fmt"
	"strings"

	"github.com/cockroachdb/apd/v3"
)

// Total is the kind of total of a column.
type Total string

// The totals. Sum and Avg need numbers; Min and Max numbers, or dates and times; Count counts cells that are not null.
const (
	Sum   Total = "sum"
	Count Total = "count"
	Avg   Total = "avg"
	Min   Total = "min"
	Max   Total = "max"
)

// maxDigits bounds the digits of a number in a total: 1e999999999 is short, but its digits are not.
const maxDigits = 1000

// ErrTotal is wrapped by the error about a cell that the total cannot include.
var ErrTotal = errors.New("cannot be totalled")

// exact adds without rounding; a division has its own precision.
var exact = apd.Context{MaxExponent: 100_000, MinExponent: -100_000, Traps: apd.DefaultTraps}

// tally is the total of one column so far.
type tally struct {
	of    Total
	title string
	count int64
	sum   apd.Decimal
	best  Cell // the least or the greatest so far
	bestN apd.Decimal
}

func newTallies(columns []Column) []tally {
	tallies := make([]tally, len(columns))
	for i, c := range columns {
		tallies[i].of, tallies[i].title = c.Total, oneLine(c.Title)
	}
	return tallies
}

func (t *tally) add(c Cell) error {
	if t.of == "" || c.Kind == Null {
		return nil
	}
	t.count++
	switch t.of {
	case Sum, Avg:
		n, err := t.number(c)
		if err != nil {
			return err
		}
		_, err = exact.Add(&t.sum, &t.sum, &n)
		return err
	case Min, Max:
		return t.addBest(c)
	case Count:
		return nil
	default:
		return fmt.Errorf("%w: there is no total %q", ErrTotal, t.of)
	}
}

func (t *tally) addBest(c Cell) error {
	if t.best.Kind != Null && t.best.Kind != c.Kind && !(isNumber(t.best) && isNumber(c)) {
		return t.refuse(c, "is of another kind than those above it")
	}
	var order int
	var n apd.Decimal
	if c.Kind == Date || c.Kind == DateTime || c.Kind == Instant {
		// The texts of the years 1 to 9999 sort like their instants.
		order = strings.Compare(strings.TrimSuffix(c.Text, "Z"), strings.TrimSuffix(t.best.Text, "Z"))
	} else {
		var err error
		if n, err = t.number(c); err != nil {
			return err
		}
		order = n.Cmp(&t.bestN)
	}
	if t.best.Kind == Null || order < 0 && t.of == Min || order > 0 && t.of == Max {
		t.best, t.bestN = c, n
	}
	return nil
}

// isNumber reports whether the cell counts as a number. Decimal numbers often come as text, to keep their digits.
func isNumber(c Cell) bool { return c.Kind == Number || c.Kind == Text && IsDecimal(c.Text) }

func (t *tally) number(c Cell) (n apd.Decimal, err error) {
	if !isNumber(c) {
		return n, t.refuse(c, "is not a number")
	}
	if _, _, err := n.SetString(c.Text); err != nil || n.Form != apd.Finite {
		return n, t.refuse(c, "is not a number")
	}
	if n.NumDigits()+int64(max(n.Exponent, -n.Exponent)) > maxDigits {
		return n, t.refuse(c, "has too many digits")
	}
	return n, nil
}

func (t *tally) refuse(c Cell, why string) error {
	text := []rune(oneLine(c.Text))
	if len(text) > 40 {
		text = append(text[:40], '…')
	}
	return fmt.Errorf("column %q, %s: %w: %q %s", t.title, t.of, ErrTotal, string(text), why)
}

// result returns the total; null without rows.
func (t *tally) result() (Cell, error) {
	switch {
	case t.of == Count:
		return Cell{Number, fmt.Sprint(t.count)}, nil
	case t.of == Sum:
		return Cell{Number, t.sum.Text('f')}, nil
	case t.count == 0 || t.of == "":
		return Cell{}, nil
	case t.of == Avg:
		return t.average()
	default:
		return t.best, nil
	}
}

// average returns the average with six digits more after the point than its numbers have, without trailing zeros.
func (t *tally) average() (Cell, error) {
	var q apd.Decimal
	division := exact.WithPrecision(uint32(max(t.sum.NumDigits(), 1)) + 40)
	if _, err := division.Quo(&q, &t.sum, apd.New(t.count, 0)); err != nil {
		return Cell{}, fmt.Errorf("average: %w", err)
	}
	places := max(-t.sum.Exponent, 0) + 6
	division.Precision = maxDigits + 100
	if _, err := division.Quantize(&q, &q, -places); err != nil {
		return Cell{}, fmt.Errorf("average: %w", err)
	}
	text := q.Text('f')
	if strings.Contains(text, ".") {
		text = strings.TrimRight(strings.TrimRight(text, "0"), ".")
	}
	return Cell{Number, text}, nil
}

// totals returns the last row, and the kind of each of its cells; nil if there is no total.
func totals(tallies []tally) (cells []Cell, of []Total, err error) {
	any := false
	cells, of = make([]Cell, len(tallies)), make([]Total, len(tallies))
	for i := range tallies {
		any = any || tallies[i].of != ""
		of[i] = tallies[i].of
		if cells[i], err = tallies[i].result(); err != nil {
			return nil, nil, err
		}
	}
	if !any {
		return nil, nil, nil
	}
	if of[0] == "" {
		cells[0] = Cell{Text, "Total"}
	}
	return cells, of, nil
}

// IsDecimal reports whether text is a number in decimal digits: -1, 0.50, 6e23.
func IsDecimal(text string) bool {
	rest := strings.TrimLeft(text, "+-")
	if len(text)-len(rest) > 1 {
		return false
	}
	rest, whole := digits(rest)
	fraction := 0
	if after, ok := strings.CutPrefix(rest, "."); ok {
		if rest, fraction = digits(after); fraction == 0 {
			return false
		}
	}
	if whole+fraction == 0 {
		return false
	}
	if rest != "" && (rest[0] == 'e' || rest[0] == 'E') {
		rest = rest[1:]
		if rest != "" && (rest[0] == '+' || rest[0] == '-') {
			rest = rest[1:]
		}
		var power int
		if rest, power = digits(rest); power == 0 {
			return false
		}
	}
	return rest == ""
}

// digits returns the rest of text after its leading digits, and how many digits there are.
func digits(text string) (rest string, n int) {
	for n < len(text) && '0' <= text[n] && text[n] <= '9' {
		n++
	}
	return text[n:], n
}
