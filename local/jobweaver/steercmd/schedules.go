// Package steercmd has the commands with which operators control an installation: schedules, controls, deliveries and
// rejected records.
package steercmd

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	"github.com/spf13/cobra"

	"github.com/jobweaver/jobweaver/local/jobweaver/cli"
)

type schedule struct {
	Name     string      `json:"name"`
	Cron     string      `json:"cron"`
	TimeZone string      `json:"timeZone"`
	Overlap  string      `json:"overlap"`
	Missed   string      `json:"missed"`
	Paused   bool        `json:"paused"`
	NextAt   *time.Time  `json:"nextAt"`
	LastAt   *time.Time  `json:"lastAt"`
	LastJob  *string     `json:"lastJobId"`
	Upcoming []time.Time `json:"upcoming"`
}

// NewSchedules makes the command schedules.
func NewSchedules() *cobra.Command {
	owner := ""
	at := func(parts ...string) string {
		text := cli.Path(append([]string{"schedules"}, parts...)...)
		if owner != "" {
			text += "?" + url.Values{"ownerId": {owner}}.Encode()
		}
		return text
	}
	simple := func(name, short string) *cobra.Command {
		return cli.Verb(name+" NAME", short, 1, func(cmd *cobra.Command, args []string) error {
			return cli.Call(cmd, http.MethodPost, at(args[0], name), nil, showSchedule)
		})
	}
	cmd := cli.Group("schedules", "Manage schedules: jobs that are submitted again and again",
		newScheduleList(at), newScheduleCreate(at),
		cli.Verb("get NAME", "Show a schedule and its next tick", 1, func(cmd *cobra.Command, args []string) error {
			return cli.Show(cmd, at(args[0]), showSchedule)
		}),
		simple("pause", "Pause a schedule"), simple("resume", "Resume a schedule"),
		cli.Verb("run NAME", "Submit the job of a schedule now", 1, func(cmd *cobra.Command, args []string) error {
			return cli.Call(cmd, http.MethodPost, at(args[0], "run"), nil, func(w io.Writer, made struct{ JobID string }) error {
				_, err := fmt.Fprintln(w, cli.Line(made.JobID))
				return err
			})
		}),
		cli.Verb("delete NAME", "Delete a schedule; its jobs stay", 1, func(cmd *cobra.Command, args []string) error {
			return cli.Call(cmd, http.MethodDelete, at(args[0]), nil, func(w io.Writer, _ json.RawMessage) error {
				_, err := fmt.Fprintf(w, "%s is deleted\n", cli.Line(args[0]))
				return err
			})
		}),
		newScheduleTicks(at))
	cmd.PersistentFlags().StringVar(&owner, "owner", "", "owner of the schedules; only for keys of the installation")
	return cmd
}

func newScheduleList(at func(...string) string) *cobra.Command {
	return cli.Verb("list", "List schedules by name", 0, func(cmd *cobra.Command, _ []string) error {
		type page struct {
			Schedules  []schedule
			NextCursor *string
		}
		return cli.Show(cmd, at(), func(w io.Writer, p page) error {
			defer cli.MoreOf(cmd, p.NextCursor)
			return showSchedules(w, p.Schedules)
		})
	})
}

// newScheduleCreate takes the job in the same way as submit.
func newScheduleCreate(at func(...string) string) *cobra.Command {
	body := map[string]any{}
	var cron, zone, overlap, missed string
	var replace bool
	short := "Create a schedule that submits a JobRequest"
	cmd := cli.Verb("create NAME FILE|-", short, 2, func(cmd *cobra.Command, args []string) error {
		if cron == "" {
			return cli.Usage("when? Give --cron, such as --cron '30 2 * * *' or --cron '@every 90s'")
		}
		job, err := cli.ReadFile(cmd, args[1])
		if err != nil {
			return err
		}
		if !json.Valid(job) {
			return cli.Usage("%s is not JSON: it must be a JobRequest", args[1])
		}
		body["job"], body["cron"] = json.RawMessage(job), cron
		for name, value := range map[string]string{"timeZone": zone, "overlap": overlap, "missed": missed} {
			if value != "" {
				body[name] = value
			}
		}
		if replace {
			return cli.Call(cmd, http.MethodPut, at(args[0]), body, showSchedule)
		}
		body["name"] = args[0]
		return cli.Call(cmd, http.MethodPost, at(), body, showSchedule)
	})
	cmd.Flags().StringVar(&cron, "cron", "", "when: five or six fields, or @every 90s")
	cmd.Flags().StringVar(&zone, "time-zone", "", "time zone of the cron expression, such as Europe/Berlin (default UTC)")
	cmd.Flags().StringVar(&overlap, "overlap", "", "if the previous job has not ended: allow, skip or cancel it")
	cmd.Flags().StringVar(&missed, "missed", "", "for missed ticks: skip them, run one or all")
	cmd.Flags().BoolVar(&replace, "replace", false, "replace the schedule of that name, if there is one")
	return cmd
}

func newScheduleTicks(at func(...string) string) *cobra.Command {
	short := "List the ticks of a schedule, newest first"
	return cli.Verb("ticks NAME", short, 1, func(cmd *cobra.Command, args []string) error {
		type tick struct {
			At      time.Time
			Outcome string
			Reason  *string
			JobID   *string
		}
		type page struct {
			Ticks      []tick
			NextCursor *string
		}
		return cli.Show(cmd, at(args[0], "ticks"), func(w io.Writer, p page) error {
			defer cli.MoreOf(cmd, p.NextCursor)
			return cli.Table(w, "AT\tOUTCOME\tJOB\tREASON", "it has not fired yet", len(p.Ticks), func(i int) []any {
				t := p.Ticks[i]
				return []any{cli.AtOrDash(&t.At), t.Outcome, cli.OrDash(t.JobID), cli.OrDash(t.Reason)}
			})
		})
	})
}

func showSchedule(w io.Writer, s schedule) error {
	if err := showSchedules(w, []schedule{s}); err != nil {
		return err
	}
	for _, next := range s.Upcoming {
		if _, err := fmt.Fprintln(w, "fires "+cli.At(&next)); err != nil {
			return err
		}
	}
	return nil
}

func showSchedules(w io.Writer, schedules []schedule) error {
	head := "NAME\tCRON\tTIME ZONE\tOVERLAP\tMISSED\tPAUSED\tNEXT\tLAST\tLAST JOB"
	return cli.Table(w, head, "no schedules", len(schedules), func(i int) []any {
		s := schedules[i]
		return []any{
			s.Name, s.Cron, s.TimeZone, s.Overlap, s.Missed, s.Paused,
			cli.AtOrDash(s.NextAt), cli.AtOrDash(s.LastAt), cli.OrDash(s.LastJob),
		}
	})
}
