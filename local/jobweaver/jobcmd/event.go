package jobcmd

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"

	"github.com/google/uuid"
	"github.com/spf13/cobra"

	"github.com/jobweaver/jobweaver/local/jobweaver/cli"
	"github.com/jobweaver/jobweaver/shared/client"
)

// NewEvent makes the command event.
func NewEvent() *cobra.Command {
	return cli.Group("event", "Send an event to the handlers that wait for it", newEventSend())
}

func newEventSend() *cobra.Command {
	var e client.CloudEvent
	cmd := &cobra.Command{
		Use:   "send TYPE [DATA]",
		Short: "Send a CloudEvent to the handlers that wait for it",
		Long: "DATA is JSON. The jobs whose handlers wait for an event like this run again at once. A handler\n" +
			"that begins to wait later gets the event, too, for as long as it is kept (RETAIN_EVENTS). An event\n" +
			"with the same source and id counts once.",
		Args: cli.Between(1, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			e.Type = args[0]
			if len(args) == 2 {
				if !json.Valid([]byte(args[1])) {
					return cli.Usage("the data must be JSON, not %q", args[1])
				}
				e.Data = json.RawMessage(args[1])
			}
			if e.ID == "" {
				e.ID = uuid.NewString()
			}
			return sendEvent(cmd, e)
		},
	}
	cmd.Flags().StringVar(&e.Source, "source", "/jobweaver-cli", "where the event comes from")
	cmd.Flags().StringVar(&e.ID, "id", "", "of the event, unique in its source (default a new one)")
	cmd.Flags().StringVar(&e.Subject, "subject", "", "of the event")
	return cmd
}

func sendEvent(cmd *cobra.Command, e client.CloudEvent) error {
	body, err := json.Marshal(struct {
		SpecVersion string `json:"specversion"`
		client.CloudEvent
	}{"1.0", e})
	if err != nil {
		return fmt.Errorf("write event: %w", err)
	}
	var kept client.EventKept
	raw, err := cli.API(cmd).Do(cmd.Context(), http.MethodPost, "/events", "application/cloudevents+json", body, &kept)
	if err != nil {
		return err
	}
	return cli.Present(cmd, raw, func(w io.Writer) error {
		_, err := fmt.Fprintf(w, "event %s is kept, %d jobs waited for it\n", cli.Line(kept.EventID), kept.Jobs)
		return err
	})
}
