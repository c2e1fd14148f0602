// Package steercmd has the commands with which operators control an installation: schedules, controls, deliveries and
// rejected records.
package steercmd

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/spf13/cobra"

	"github.com/jobweaver/jobweaver/local/jobweaver/cli"
	"github.com/jobweaver/jobweaver/shared/client"
)

// NewSchedules makes the command schedules.
func NewSchedules() *cobra.Command {
	n := &named{kind: "schedules"}
	cmd := cli.Group("schedules", "Manage schedules: jobs that are submitted again and again",
		newScheduleList(n.at), newScheduleCreate(n.at), newScheduleChange(n.at),
		cli.Verb("get NAME", "Show a schedule and its next tick", 1, func(cmd *cobra.Command, args []string) error {
			return cli.Show(cmd, n.at(args[0]), showSchedule)
		}),
		posts(n, "pause", "Pause a schedule", showSchedule), posts(n, "resume", "Resume a schedule", showSchedule),
		posts(n, "run", "Submit the job of a schedule now", showJobID),
		n.deletes("Delete a schedule; its jobs stay"), newScheduleTicks(n.at))
	n.register(cmd)
	return cmd
}

func newScheduleList(at func(...string) string) *cobra.Command {
	return cli.Verb("list", "List schedules by name", 0, func(cmd *cobra.Command, _ []string) error {
		type page struct {
			Schedules  []client.Schedule
			NextCursor *string
		}
		return cli.Show(cmd, at(), func(w io.Writer, p page) error {
			defer cli.MoreOf(cmd, p.NextCursor)
			return showSchedules(w, p.Schedules)
		})
	})
}

// scheduleFlags are the members of a schedule beside its job.
type scheduleFlags struct{ cron, zone, overlap, missed, startAt, endAt string }

func (f *scheduleFlags) register(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&f.cron, "cron", "", "when: five or six fields, or @every 90s")
	flags.StringVar(&f.zone, "time-zone", "", "time zone of the cron expression, such as Europe/Berlin (default UTC)")
	flags.StringVar(&f.overlap, "overlap", "", "if the previous job has not ended: allow, skip or cancel it")
	flags.StringVar(&f.missed, "missed", "", "for missed ticks: skip them, run one or all")
	flags.StringVar(&f.startAt, "start-at", "", "no tick before this instant (RFC 3339)")
	flags.StringVar(&f.endAt, "end-at", "", "no tick after this instant (RFC 3339)")
}

// set sets the members whose flags are given; an empty one is taken away, so that its default holds.
func (f *scheduleFlags) set(cmd *cobra.Command, body map[string]any) {
	for _, member := range []struct{ flag, name, value string }{
		{"cron", "cron", f.cron}, {"time-zone", "timeZone", f.zone}, {"overlap", "overlap", f.overlap},
		{"missed", "missed", f.missed}, {"start-at", "startAt", f.startAt}, {"end-at", "endAt", f.endAt},
	} {
		switch {
		case !cmd.Flags().Changed(member.flag):
		case member.value == "":
			delete(body, member.name)
		default:
			body[member.name] = member.value
		}
	}
}

// newScheduleCreate takes the job in the same way as submit.
func newScheduleCreate(at func(...string) string) *cobra.Command {
	var flags scheduleFlags
	var replace, paused bool
	short := "Create a schedule that submits a JobRequest"
	cmd := cli.Verb("create NAME FILE|-", short, 2, func(cmd *cobra.Command, args []string) error {
		if flags.cron == "" {
			return cli.Usage("when? Give --cron, such as --cron '30 2 * * *' or --cron '@every 90s'")
		}
		job, err := jobOf(cmd, args[1])
		if err != nil {
			return err
		}
		body := map[string]any{"job": job}
		if paused {
			body["paused"] = true
		}
		flags.set(cmd, body)
		if replace {
			return cli.Call(cmd, http.MethodPut, at(args[0]), body, showSchedule)
		}
		body["name"] = args[0]
		return cli.Call(cmd, http.MethodPost, at(), body, showSchedule)
	})
	flags.register(cmd)
	cmd.Flags().BoolVar(&paused, "paused", false, "it fires only once it is resumed")
	cmd.Flags().BoolVar(&replace, "replace", false, "replace the whole schedule of that name, if there is one")
	return cmd
}

func jobOf(cmd *cobra.Command, file string) (json.RawMessage, error) {
	job, err := cli.ReadFile(cmd, file)
	if err == nil && !json.Valid(job) {
		err = cli.Usage("%s is not JSON: it must be a JobRequest", file)
	}
	return job, err
}

// newScheduleChange makes a command that keeps whatever it does not change.
func newScheduleChange(at func(...string) string) *cobra.Command {
	var flags scheduleFlags
	cmd := &cobra.Command{
		Use:   "change NAME [FILE|-]",
		Short: "Change a schedule, by flags, or its job, by a JobRequest from a file or standard input; the rest stays",
		Args:  cli.Between(1, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			var now map[string]any
			raw, tag, err := cli.API(cmd).Read(cmd.Context(), at(args[0]), nil)
			if err != nil {
				return err
			}
			d := json.NewDecoder(bytes.NewReader(raw))
			d.UseNumber() // the numbers of its job stay as they are
			if err := d.Decode(&now); err != nil {
				return fmt.Errorf("read the schedule: %w", err)
			}
			body := map[string]any{}
			for _, name := range []string{"cron", "timeZone", "job", "overlap", "missed", "paused", "startAt", "endAt"} {
				if now[name] != nil {
					body[name] = now[name]
				}
			}
			flags.set(cmd, body)
			if len(args) > 1 {
				if body["job"], err = jobOf(cmd, args[1]); err != nil {
					return err
				}
			}
			if body["job"] == nil {
				return cli.Usage("the gateway cannot show the job of the schedule: name the file of a new one")
			}
			return cli.Call(cmd, http.MethodPut, at(args[0]), body, showSchedule, "If-Match", tag)
		},
	}
	flags.register(cmd)
	cmd.Flags().Lookup("time-zone").Usage = "time zone of the cron expression, such as Europe/Berlin"
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

func showSchedule(w io.Writer, s client.Schedule) error {
	if err := showSchedules(w, []client.Schedule{s}); err != nil {
		return err
	}
	for _, next := range s.Upcoming {
		if _, err := fmt.Fprintln(w, "fires "+cli.At(&next)); err != nil {
			return err
		}
	}
	return nil
}

func showSchedules(w io.Writer, schedules []client.Schedule) error {
	head := "NAME\tCRON\tTIME ZONE\tOVERLAP\tMISSED\tPAUSED\tNEXT\tLAST\tLAST JOB"
	return cli.Table(w, head, "no schedules", len(schedules), func(i int) []any {
		s := schedules[i]
		return []any{
			s.Name, s.Cron, s.TimeZone, s.Overlap, s.Missed, s.Paused,
			cli.AtOrDash(s.NextAt), cli.AtOrDash(s.LastAt), cmp.Or(s.LastJobID, "-"),
		}
	})
}
