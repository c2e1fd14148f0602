package cli

import (
	"io"
	"os"
	"strings"
)

// colours are ANSI codes for terminals.
var colours = map[string]string{
	"COMPLETED": "32", "FAILED": "31", "CANCELLED": "33", "RETRYING": "33", "RUNNING": "36", "WAITING": "36",
}

// Coloured returns a job's status for output to w: in colour on a terminal, unless NO_COLOR is set
// (https://no-color.org).
func Coloured(w io.Writer, status string) string {
	code, known := colours[status]
	if !known || os.Getenv("NO_COLOR") != "" || os.Getenv("TERM") == "dumb" || !IsTerminal(w) {
		return Line(status)
	}
	return "\x1b[" + code + "m" + status + "\x1b[0m"
}

// Statuses are the states of a job, in their order.
var Statuses = strings.Fields("SCHEDULED PENDING QUEUED RUNNING WAITING RETRYING COMPLETED FAILED CANCELLED")
