package jobcmd

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/jobweaver/jobweaver/local/jobweaver/cli"
)

// NewCallback makes the command callback, which reports the outcome of a WAITING attempt as an outside system does.
func NewCallback() *cobra.Command {
	var code, message string
	var final bool
	cmd := &cobra.Command{
		Use:   "callback JOB ATTEMPT completed [OUTPUT] | failed | progress PERCENT",
		Short: "Report the outcome or progress of an attempt that waits for an outside system",
		Long: "JOBWEAVER_CALLBACK_SECRET holds the secret of the attempt, or one of the installation.\n" +
			"OUTPUT is JSON.",
		Args: cli.Between(3, 4),
		RunE: func(cmd *cobra.Command, args []string) error {
			attempt, err := strconv.Atoi(args[1])
			if err != nil {
				return cli.Usage("the attempt is a number, not %q", args[1])
			}
			body := map[string]any{"jobId": args[0], "attempt": attempt, "status": strings.ToUpper(args[2])}
			switch {
			case args[2] == "completed" && len(args) == 4 && !json.Valid([]byte(args[3])):
				return cli.Usage("the output must be JSON, not %q", args[3])
			case args[2] == "completed" && len(args) == 4:
				body["output"] = json.RawMessage(args[3])
			case args[2] == "failed" && len(args) == 3:
				body["retryable"] = !final
				setIf(body, "errorCode", code)
				setIf(body, "message", message)
			case args[2] == "progress" && len(args) == 4:
				percent, err := strconv.Atoi(args[3])
				if err != nil {
					return cli.Usage("the progress must be a number from 0 to 100, not %q", args[3])
				}
				progress := map[string]any{"percent": percent}
				setIf(progress, "message", message)
				body["progress"] = progress
			case args[2] != "completed":
				return cli.Usage("the third argument must be completed [OUTPUT], failed, or progress PERCENT")
			}
			return sendCallback(cmd, body)
		},
	}
	cmd.Flags().StringVar(&code, "code", "", "with failed: the error code")
	cmd.Flags().StringVar(&message, "message", "", "with failed and progress: the message")
	cmd.Flags().BoolVar(&final, "final", false, "with failed: do not retry")
	return cmd
}

func setIf(body map[string]any, name, text string) {
	if text != "" {
		body[name] = text
	}
}

func sendCallback(cmd *cobra.Command, body map[string]any) error {
	secret := os.Getenv("JOBWEAVER_CALLBACK_SECRET")
	if secret == "" {
		return cli.Usage("JOBWEAVER_CALLBACK_SECRET is not set")
	}
	sent, err := json.Marshal(body)
	if err != nil {
		return fmt.Errorf("write request: %w", err)
	}
	// Without the API key: the secret is enough, and the key must not be sent to the host of an outside system.
	raw, err := cli.NewClient(cli.GatewayURL(cmd), "").Do(cmd.Context(), http.MethodPost, "/api/jobs/callback",
		"application/json", sent, nil, "X-Callback-Secret", secret)
	if err != nil {
		return err
	}
	return cli.Present(cmd, raw, func(w io.Writer) error {
		_, err := fmt.Fprintf(w, "attempt %v of %s: the callback is taken\n",
			body["attempt"], cli.Line(fmt.Sprint(body["jobId"])))
		return err
	})
}
