package main

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/jobweaver/jobweaver/local/jobweaver/cli"
	"github.com/jobweaver/jobweaver/local/jobweaver/installcmd"
	"github.com/jobweaver/jobweaver/local/jobweaver/steercmd"
)

// completionPatience is how long a shell waits for the gateway after a TAB.
const completionPatience = time.Second

var (
	kinds      = []string{"queue", "type", "owner", "fairnessKey"}
	flagValues = map[string]cobra.CompletionFunc{
		"output": fixed(cli.Formats...), "status": fixed(cli.Statuses...), "type": live(typesOf), "queue": live(queuesOf),
		"overlap": fixed("allow", "skip", "cancel"), "missed": fixed("skip", "one", "all"),
		"on-dependency-failure": fixed("cancel", "run"), "role": fixed("submit", "read", "operate", "work", "admin"),
		"workers": fixed("runjob", "pull"), "kafka": fixed("embedded", "apache"), "only": fixed("postgres", "kafka"),
		"redriven": fixed("true", "false"), "topic": live(topicsOfRejected), "function": live(functionsOfRejected),
		"log-level": fixed("debug", "info", "warn", "error"),
	}
	argumentValues = map[string]cobra.CompletionFunc{
		"submit": cobra.FixedCompletions(nil, cobra.ShellCompDirectiveDefault), "schedules create": secondIsFile,
		"work":   cobra.FixedCompletions(nil, cobra.ShellCompDirectiveDefault),
		"change": secondIsFile, "run-again": secondIsFile,
		"types": first(live(typesOf)), "limit": completeControl, "pause": completeControl, "resume": completeControl,
		"schedules change": first(live(schedulesOf)),
		"schedules get":    first(live(schedulesOf)), "schedules pause": first(live(schedulesOf)),
		"schedules resume": first(live(schedulesOf)), "schedules run": first(live(schedulesOf)),
		"schedules delete": first(live(schedulesOf)), "schedules ticks": first(live(schedulesOf)),
		"alerts change": first(live(alertsOf)), "alerts get": first(live(alertsOf)), "alerts pause": first(live(alertsOf)),
		"alerts resume": first(live(alertsOf)), "alerts test": first(live(alertsOf)),
		"alerts delete": first(live(alertsOf)), "alerts notices": first(live(alertsOf)),
		"queue get": first(live(queuesOf)), "queue remove": first(live(queuesOf)),
		"rejected show":    first(live(rejectedIDs)),
		"rejected redrive": live(rejectedIDs), "rejected delete": live(rejectedIDs),
		"callback": third(fixed("completed", "failed", "progress")), "webhook-secrets": first(fixed("end", "call")),
		"function": first(fixed(installcmd.FunctionNames()...)),
	}
)

// completions gives each command and flag its values for the shell's TAB. The ids of jobs are not completed, and no
// file names take their place.
func completions(root *cobra.Command) {
	cli.Each(root, func(cmd *cobra.Command) {
		name := strings.TrimPrefix(cmd.CommandPath(), "jobweaver ")
		if values, ok := argumentValues[name]; ok {
			cmd.ValidArgsFunction = values
		} else if cmd.RunE != nil && !cmd.HasSubCommands() {
			cmd.ValidArgsFunction = cobra.NoFileCompletions
		}
		for flag, values := range flagValues {
			if cmd.LocalFlags().Lookup(flag) == nil {
				continue
			}
			if name == "deliveries list" && flag == "status" {
				values = fixed("PENDING", "DELIVERED", "FAILED")
			}
			if err := cmd.RegisterFlagCompletionFunc(flag, values); err != nil {
				panic(err) // the flag exists and has no completion yet
			}
		}
	})
}

func fixed(values ...string) cobra.CompletionFunc {
	return cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp)
}

// live asks the gateway. If the gateway does not respond, nothing is completed.
func live(list func(ctx context.Context, cmd *cobra.Command) []string) cobra.CompletionFunc {
	return func(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
		ctx, cancel := context.WithTimeout(cmd.Context(), completionPatience)
		defer cancel()
		return list(ctx, cmd), cobra.ShellCompDirectiveNoFileComp
	}
}

func first(values cobra.CompletionFunc) cobra.CompletionFunc { return nth(0, values) }

func third(values cobra.CompletionFunc) cobra.CompletionFunc { return nth(2, values) }

func nth(n int, values cobra.CompletionFunc) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, text string) ([]string, cobra.ShellCompDirective) {
		if len(args) != n {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return values(cmd, args, text)
	}
}

func secondIsFile(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(args) == 1 {
		return nil, cobra.ShellCompDirectiveDefault
	}
	return nil, cobra.ShellCompDirectiveNoFileComp
}

// completeControl completes the kind of a control, and then its name.
func completeControl(cmd *cobra.Command, args []string, text string) ([]string, cobra.ShellCompDirective) {
	switch {
	case len(args) == 0:
		return kinds, cobra.ShellCompDirectiveNoFileComp
	case len(args) > 1:
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return live(func(ctx context.Context, cmd *cobra.Command) []string {
		names := controlsOf(ctx, cmd, args[0])
		switch args[0] {
		case "type":
			names = append(names, typesOf(ctx, cmd)...)
		case "queue":
			names = append(names, queuesOf(ctx, cmd)...)
		}
		slices.Sort(names)
		return slices.Compact(names)
	})(cmd, args, text)
}

type named struct{ Name string }

// listed requests a page; it returns the zero value on an error.
func listed[T any](ctx context.Context, cmd *cobra.Command, what string) (page T) {
	if _, err := cli.API(cmd).Do(ctx, http.MethodGet, cli.Path(what), "", nil, &page); err != nil {
		cobra.CompDebugln(err.Error(), false)
	}
	return page
}

func typesOf(ctx context.Context, cmd *cobra.Command) (names []string) {
	for _, t := range listed[struct{ JobTypes []named }](ctx, cmd, "job-types").JobTypes {
		names = append(names, cli.Line(t.Name))
	}
	return names
}

func queuesOf(ctx context.Context, cmd *cobra.Command) (names []string) {
	for _, q := range listed[struct{ Queues []struct{ Queue string } }](ctx, cmd, "queues").Queues {
		names = append(names, cli.Line(q.Queue))
	}
	return names
}

func schedulesOf(ctx context.Context, cmd *cobra.Command) (names []string) {
	for _, s := range listed[struct{ Schedules []named }](ctx, cmd, "schedules").Schedules {
		names = append(names, cli.Line(s.Name))
	}
	return names
}

func alertsOf(ctx context.Context, cmd *cobra.Command) (names []string) {
	for _, a := range listed[struct{ Alerts []named }](ctx, cmd, "alerts").Alerts {
		names = append(names, cli.Line(a.Name))
	}
	return names
}

func controlsOf(ctx context.Context, cmd *cobra.Command, kind string) (names []string) {
	for _, c := range listed[struct{ Controls []struct{ Kind, Name string } }](ctx, cmd, "controls").Controls {
		if c.Kind == kind {
			names = append(names, cli.Line(c.Name))
		}
	}
	return names
}

// rejectedIDs returns the ids of the latest rejected records, each with its place and reason.
func rejectedIDs(ctx context.Context, cmd *cobra.Command) (ids []string) {
	for _, r := range listed[steercmd.RejectedPage](ctx, cmd, "rejected").Rejected {
		ids = append(ids, cli.Line(r.ID+"\t"+r.Place()+" "+r.Reason))
	}
	return ids
}

func topicsOfRejected(ctx context.Context, cmd *cobra.Command) (names []string) {
	for _, r := range listed[steercmd.RejectedPage](ctx, cmd, "rejected").Rejected {
		names = append(names, cli.Line(r.Topic))
	}
	slices.Sort(names)
	return slices.Compact(names)
}

func functionsOfRejected(ctx context.Context, cmd *cobra.Command) (names []string) {
	for _, r := range listed[steercmd.RejectedPage](ctx, cmd, "rejected").Rejected {
		names = append(names, cli.Line(r.Function))
	}
	slices.Sort(names)
	return slices.Compact(names)
}
