package steercmd

import (
	"github.com/schollz/progressbar/v3"
	"github.com/spf13/cobra"

	"github.com/jobweaver/jobweaver/local/jobweaver/cli"
)

// recordsBar shows on a terminal how many of the records are done.
type recordsBar struct{ bar *progressbar.ProgressBar } // nil: not a terminal, or only a few records

func newRecordsBar(cmd *cobra.Command, name string, records int) recordsBar {
	const fewest = 10
	w := cmd.ErrOrStderr()
	if !cli.IsTerminal(w) || records < fewest {
		return recordsBar{}
	}
	return recordsBar{progressbar.NewOptions(records, progressbar.OptionSetWriter(w), progressbar.OptionSetWidth(30),
		progressbar.OptionSetDescription(name), progressbar.OptionSetItsString("records"), progressbar.OptionShowCount(),
		progressbar.OptionClearOnFinish())}
}

func (b recordsBar) add() {
	if b.bar != nil {
		_ = b.bar.Add(1) // the terminal may be gone
	}
}

func (b recordsBar) finish() {
	if b.bar != nil {
		_ = b.bar.Finish()
	}
}
