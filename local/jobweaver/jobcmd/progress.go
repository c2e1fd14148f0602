package jobcmd

import (
	"fmt"
	"io"
	"time"

	"github.com/schollz/progressbar/v3"
	"github.com/spf13/cobra"

	"github.com/jobweaver/jobweaver/local/jobweaver/cli"
	"github.com/jobweaver/jobweaver/shared/client"
)

// How long one request waits for the end of an operation: with a progress bar, and without.
const (
	barWait       = time.Second
	operationWait = 30 * time.Second
)

// operationProgress shows the progress of an operation: as a bar on a terminal, else as a line for each response.
type operationProgress struct {
	w   io.Writer
	bar *progressbar.ProgressBar // nil: not a terminal
}

func newOperationProgress(cmd *cobra.Command) *operationProgress {
	p := &operationProgress{w: cmd.ErrOrStderr()}
	if cli.IsTerminal(p.w) {
		p.bar = progressbar.NewOptions64(1, progressbar.OptionSetWriter(p.w), progressbar.OptionSetWidth(30),
			progressbar.OptionSetItsString("jobs"), progressbar.OptionShowIts(), progressbar.OptionShowCount(),
			progressbar.OptionSetElapsedTime(true), progressbar.OptionClearOnFinish())
	}
	return p
}

func (p *operationProgress) wait() time.Duration {
	if p.bar != nil {
		return barWait
	}
	return operationWait
}

// show is called with each response, including the last one.
func (p *operationProgress) show(o client.Operation) error {
	done := o.Progress.Applied + o.Progress.Refused + o.Progress.Skipped
	switch {
	case p.bar != nil && o.FinishedAt != nil:
		return p.bar.Finish()
	case p.bar != nil:
		p.bar.Describe(cli.Line(o.Command))
		p.bar.ChangeMax(max(o.Progress.Matched, done) + 1) // a full bar shows nothing more, and more jobs may match
		return p.bar.Set(done)
	case o.FinishedAt == nil:
		_, err := fmt.Fprintf(p.w, "%s: %d of %d jobs done, %d asked\n",
			cli.Line(o.Command), done, o.Progress.Matched, o.Progress.Asked)
		return err
	}
	return nil
}
