package steercmd

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/spf13/cobra"

	"github.com/jobweaver/jobweaver/local/jobweaver/cli"
	"github.com/jobweaver/jobweaver/shared/client"
)

// destination returns where notices go, as a person reads it.
func destination(to *client.Destination) string {
	switch {
	case to == nil:
		return "-"
	case to.Slack != "":
		return "Slack " + to.Slack
	case to.Webhook != "":
		return to.Webhook
	}
	return strings.Join(to.Email, ", ")
}

// NewAlerts makes the command alerts.
func NewAlerts() *cobra.Command {
	n := &named{kind: "alerts"}
	cmd := cli.Group("alerts", "Manage alerts: notices to a webhook, Slack or by mail when jobs fail",
		newAlertList(n.at), newAlertCreate(n), newAlertChange(n.at),
		cli.Verb("get NAME", "Show an alert and what it counts now", 1, func(cmd *cobra.Command, args []string) error {
			return cli.Show(cmd, n.at(args[0]), showAlert)
		}),
		posts(n, "pause", "Pause an alert", showAlert), posts(n, "resume", "Resume an alert", showAlert),
		posts(n, "test", "Send a notice of an alert now", showJobID),
		n.deletes("Delete an alert and its notices"), newAlertNotices(n.at))
	n.register(cmd)
	return cmd
}

func newAlertList(at func(...string) string) *cobra.Command {
	return cli.Verb("list", "List alerts by name", 0, func(cmd *cobra.Command, _ []string) error {
		type page struct {
			Alerts     []client.Alert
			NextCursor *string
		}
		return cli.Show(cmd, at(), func(w io.Writer, p page) error {
			defer cli.MoreOf(cmd, p.NextCursor)
			return showAlerts(w, p.Alerts)
		})
	})
}

// alertFlag is the flag for a member of an alert.
type alertFlag struct{ flag, member, usage string }

// alertTexts choose jobs; an empty one takes the choice away. alertNumbers are when it fires.
var (
	alertTexts = []alertFlag{
		{"type", "jobType", "count the jobs of this type"},
		{"queue", "queue", "count the jobs of this queue"},
		{"error-code", "errorCode", "count the failures with this error code"},
	}
	alertNumbers = []alertFlag{
		{"failures", "failures", "fire if as many jobs have failed (default 1)"},
		{"percent", "percent", "and they are this part of the jobs that ended; 0: however many ended"},
		{"window-minutes", "windowMinutes", "within this time, at most 60 minutes (default 5)"},
		{"quiet-minutes", "quietMinutes", "least time between two notices that it fires (default 60)"},
	}
)

func registerAlert(cmd *cobra.Command) {
	for _, f := range alertTexts {
		cmd.Flags().String(f.flag, "", f.usage)
	}
	for _, f := range alertNumbers {
		cmd.Flags().Int(f.flag, 0, f.usage)
	}
	cmd.Flags().String("webhook", "", "send notices to this URL, as signed CloudEvents; -: the URL is on standard input")
	cmd.Flags().String("slack", "", "send notices to this incoming webhook of Slack; -: its URL is on standard input")
	cmd.Flags().StringSlice("email", nil, "send notices to these addresses")
	cmd.MarkFlagsMutuallyExclusive("webhook", "slack", "email")
}

// setAlert sets the members whose flags are given.
func setAlert(cmd *cobra.Command, body map[string]any) error {
	for _, f := range alertTexts {
		if value, err := cmd.Flags().GetString(f.flag); err == nil && cmd.Flags().Changed(f.flag) {
			if body[f.member] = value; value == "" {
				delete(body, f.member)
			}
		}
	}
	for _, f := range alertNumbers {
		if value, err := cmd.Flags().GetInt(f.flag); err == nil && cmd.Flags().Changed(f.flag) {
			if body[f.member] = value; value == 0 && f.member == "percent" {
				delete(body, f.member)
			}
		}
	}
	for _, kind := range []string{"webhook", "slack"} {
		address, _ := cmd.Flags().GetString(kind)
		if address == "-" {
			text, err := cli.ReadFile(cmd, address)
			if err != nil {
				return err
			}
			address = strings.TrimSpace(string(text))
		}
		if address != "" {
			body["to"] = map[string]any{kind: address}
		}
	}
	if addresses, _ := cmd.Flags().GetStringSlice("email"); len(addresses) > 0 {
		body["to"] = map[string]any{"email": addresses}
	}
	return nil
}

func newAlertCreate(n *named) *cobra.Command {
	var replace, paused bool
	cmd := cli.Verb("create NAME", "Create an alert", 1, func(cmd *cobra.Command, args []string) error {
		body := map[string]any{}
		if err := setAlert(cmd, body); err != nil {
			return err
		}
		if body["to"] == nil {
			return cli.Usage("where do notices go? Give --slack, --webhook or --email")
		}
		if paused {
			body["paused"] = true
		}
		if replace {
			return cli.Call(cmd, http.MethodPut, n.at(args[0]), body, showAlert)
		}
		body["name"] = args[0]
		if n.owner != "" {
			body["ownerId"] = n.owner
		}
		return cli.Call(cmd, http.MethodPost, cli.Path("alerts"), body, showAlert)
	})
	registerAlert(cmd)
	cmd.Flags().BoolVar(&paused, "paused", false, "it sends notices only once it is resumed")
	cmd.Flags().BoolVar(&replace, "replace", false, "replace the whole alert of that name, if there is one")
	return cmd
}

// newAlertChange makes a command that keeps whatever it does not change.
func newAlertChange(at func(...string) string) *cobra.Command {
	short := "Change an alert by flags; the rest stays"
	cmd := cli.Verb("change NAME", short, 1, func(cmd *cobra.Command, args []string) error {
		raw, tag, err := cli.API(cmd).Read(cmd.Context(), at(args[0]), nil)
		if err != nil {
			return err
		}
		var now, body map[string]any
		if err := json.Unmarshal(raw, &now); err != nil {
			return fmt.Errorf("read the alert: %w", err)
		}
		body = map[string]any{}
		for _, name := range []string{
			"jobType", "queue", "errorCode", "failures", "percent", "windowMinutes", "quietMinutes", "to", "paused",
		} {
			if now[name] != nil {
				body[name] = now[name]
			}
		}
		if err := setAlert(cmd, body); err != nil {
			return err
		}
		if body["to"] == nil {
			return cli.Usage("the gateway cannot show where the notices go: give --slack, --webhook or --email")
		}
		return cli.Call(cmd, http.MethodPut, at(args[0]), body, showAlert, "If-Match", tag)
	})
	registerAlert(cmd)
	return cmd
}

func newAlertNotices(at func(...string) string) *cobra.Command {
	short := "List the notices of an alert, newest first"
	return cli.Verb("notices NAME", short, 1, func(cmd *cobra.Command, args []string) error {
		type page struct {
			Notices    []client.Notice
			NextCursor *string
		}
		return cli.Show(cmd, at(args[0], "notices"), func(w io.Writer, p page) error {
			defer cli.MoreOf(cmd, p.NextCursor)
			return cli.Table(w, "AT\tSTATE\tFAILED\tENDED\tJOB", "no notice was sent yet", len(p.Notices), func(i int) []any {
				n := p.Notices[i]
				return []any{cli.AtOrDash(&n.At), n.State, n.Failed, n.Ended, n.JobID}
			})
		})
	})
}

func showAlert(w io.Writer, a client.Alert) error { return showAlerts(w, []client.Alert{a}) }

func showAlerts(w io.Writer, alerts []client.Alert) error {
	head := "NAME\tSTATE\tSINCE\tFAILED\tENDED\tTYPE\tQUEUE\tERROR CODE\tFIRES AT\tTO"
	return cli.Table(w, head, "no alerts", len(alerts), func(i int) []any {
		a := alerts[i]
		state, fires := a.State, fmt.Sprintf("%d in %d min", a.Failures, a.WindowMinutes)
		if a.Paused {
			state = "PAUSED"
		}
		if a.Percent > 0 {
			fires += fmt.Sprintf(", %d %%", a.Percent)
		}
		return []any{
			a.Name, state, cli.AtOrDash(a.FiringSince), a.Failed, a.Ended, cli.DashIfEmpty(a.JobType), cli.DashIfEmpty(a.Queue),
			cli.DashIfEmpty(a.ErrorCode), fires, destination(a.To),
		}
	})
}
