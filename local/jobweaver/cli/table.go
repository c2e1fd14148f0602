package cli

import (
	"fmt"
	"io"
	"text/tabwriter"
	"time"
)

// Table prints rows below their header, or the text none if there are none.
func Table(w io.Writer, head, none string, rows int, row func(i int) []any) error {
	if rows == 0 {
		_, err := fmt.Fprintln(w, none)
		return err
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, head)
	for i := range rows {
		for n, cell := range row(i) {
			if n > 0 {
				fmt.Fprint(t, "\t")
			}
			fmt.Fprint(t, Line(fmt.Sprint(cell)))
		}
		fmt.Fprintln(t)
	}
	return t.Flush()
}

// OrDash returns an optional value, or a dash.
func OrDash[T any](value *T) any {
	if value == nil {
		return "-"
	}
	return *value
}

// AtOrDash returns an optional instant, or a dash.
func AtOrDash(instant *time.Time) string {
	if instant == nil {
		return "-"
	}
	return At(instant)
}
