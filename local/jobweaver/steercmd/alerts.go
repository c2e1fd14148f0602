package steercmd

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/jobweaver/jobweaver/local/jobweaver/cli"
)

type alert struct {
	Name          string       `json:"name"`
	JobType       *string      `json:"jobType"`
	Queue         *string      `json:"queue"`
	ErrorCode     *string      `json:"errorCode"`
	Failures      int          `json:"failures"`
	Percent       *int         `json:"percent"`
	WindowMinutes int          `json:"windowMinutes"`
	QuietMinutes  int          `json:"quietMinutes"`
	To            *destination `json:"to"`
	Paused        bool         `json:"paused"`
	State         string       `json:"state"`
	FiringSince   *time.Time   `json:"firingSince"`
	Failed        int64        `json:"failed"`
	Ended         int64        `json:"ended"`
}

type destination struct {
	Webhook string   `json:"webhook,omitempty"`
	Slack   string   `json:"slack,omitempty"`
	Email   []string `json:"email,omitempty"`
}

func (d *destination) String() string {
	switch {
	case d == nil:
		return "-"
	case d.Slack != "":
		return "Slack " + d.Slack
	case d.Webhook != "":
		return d.Webhook
	}
	return strings.Join(d.Email, ", ")
}

// NewAlerts makes the command alerts.
func NewAlerts() *cobra.Command {
	owner := ""
	at := func(parts ...string) string {
		text := cli.Path(append([]string{"alerts"}, parts...)...)
		if owner != "" {
			text += "?" + url.Values{"ownerId": {owner}}.Encode()
		}
		return text
	}
	simple := func(name, short string) *cobra.Command {
		return cli.Verb(name+" NAME", short, 1, func(cmd *cobra.Command, args []string) error {
			return cli.Call(cmd, http.MethodPost, at(args[0], name), nil, showAlert)
		})
	}
	cmd := cli.Group("alerts", "Manage alerts: notices to a webhook, Slack or by mail when jobs fail",
		newAlertList(at), newAlertCreate(at, &owner), newAlertChange(at),
		cli.Verb("get NAME", "Show an alert and what it counts now", 1, func(cmd *cobra.Command, args []string) error {
			return cli.Show(cmd, at(args[0]), showAlert)
		}),
		simple("pause", "Pause an alert"), simple("resume", "Resume an alert"),
		cli.Verb("test NAME", "Send a notice of an alert now", 1, func(cmd *cobra.Command, args []string) error {
			show := func(w io.Writer, made struct{ JobID string }) error {
				_, err := fmt.Fprintln(w, cli.Line(made.JobID))
				return err
			}
			return cli.Call(cmd, http.MethodPost, at(args[0], "test"), nil, show)
		}),
		cli.Verb("delete NAME", "Delete an alert and its notices", 1, func(cmd *cobra.Command, args []string) error {
			return cli.Call(cmd, http.MethodDelete, at(args[0]), nil, func(w io.Writer, _ json.RawMessage) error {
				_, err := fmt.Fprintf(w, "%s is deleted\n", cli.Line(args[0]))
				return err
			})
		}),
		newAlertNotices(at))
	cmd.PersistentFlags().StringVar(&owner, "owner", "", "owner of the alerts; only for keys of the installation")
	return cmd
}

func newAlertList(at func(...string) string) *cobra.Command {
	return cli.Verb("list", "List alerts by name", 0, func(cmd *cobra.Command, _ []string) error {
		type page struct {
			Alerts     []alert
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

func newAlertCreate(at func(...string) string, owner *string) *cobra.Command {
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
			return cli.Call(cmd, http.MethodPut, at(args[0]), body, showAlert)
		}
		body["name"] = args[0]
		if *owner != "" {
			body["ownerId"] = *owner
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
		type notice struct {
			At            time.Time
			State, JobID  string
			Failed, Ended int64
		}
		type page struct {
			Notices    []notice
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

func showAlert(w io.Writer, a alert) error { return showAlerts(w, []alert{a}) }

func showAlerts(w io.Writer, alerts []alert) error {
	head := "NAME\tSTATE\tSINCE\tFAILED\tENDED\tTYPE\tQUEUE\tERROR CODE\tFIRES AT\tTO"
	return cli.Table(w, head, "no alerts", len(alerts), func(i int) []any {
		a := alerts[i]
		state, fires := a.State, fmt.Sprintf("%d in %d min", a.Failures, a.WindowMinutes)
		if a.Paused {
			state = "PAUSED"
		}
		if a.Percent != nil {
			fires += fmt.Sprintf(", %d %%", *a.Percent)
		}
		return []any{
			a.Name, state, cli.AtOrDash(a.FiringSince), a.Failed, a.Ended, cli.OrDash(a.JobType), cli.OrDash(a.Queue),
			cli.OrDash(a.ErrorCode), fires, a.To.String(),
		}
	})
}
