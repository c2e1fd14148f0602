package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/jobweaver/jobweaver/local/jobweaver/cli"
	"github.com/jobweaver/jobweaver/shared/funchost"
)

// groups are the groups of commands in --help, with their order.
var groups = []struct{ title, commands string }{
	{"Jobs", "submit event get list watch logs cancel retry reschedule change run-again delete dead work"},
	{"Many jobs, again and again", "batch flow operations schedules alerts queue controls limit pause resume drain"},
	{"What happens", "stats lag shares workers types deliveries rejected audit callback hooks mcp"},
	{"Access", "keys webhook-secrets"},
	{"Install and run", "init dev serve function healthcheck migrate doctor topics outbox keyset secrets after-restore"},
}

const environment = `
Environment variables:
  JOBWEAVER_URL              the gateway (default ` + cli.DefaultURL + `)
  JOBWEAVER_API_KEY          the API key; or JOBWEAVER_API_KEY_FILE, a file that holds it
  JOBWEAVER_CA_FILE          PEM of the CAs that verify the gateway
  JOBWEAVER_CERT_FILE        a client certificate, with JOBWEAVER_KEY_FILE
  JOBWEAVER_CALLBACK_SECRET  for callback: the secret of the attempt or of the installation
  NO_COLOR                   when set, the output has no colors
  DATABASE_URL, KAFKA_BROKERS, QUEUES  for dev, migrate, doctor, topics, keys bootstrap and after-restore

Exit codes:
  0 done  1 the job failed, or the command did  2 the job was cancelled  3 the API refused
  4 the gateway was not reached  64 wrong usage  124 submit --wait was over before the job had ended
  130 interrupted or declined
`

// examples are by the name of the command.
var examples = map[string]string{
	"submit": `jobweaver submit --type SIMULATION --payload '{"steps":[{"type":"LOG","message":"hi"}]}' --watch
jobweaver submit --type EMAIL --payload @mail.json --delay 10m --key order-17
jobweaver submit job.json --wait 2m
echo '{"jobs":[…]}' | jobweaver submit -`,
	"get": `jobweaver get 01936f3e-5f3e-7cc0-8000-0123456789ab
jobweaver get ID --wait 30s -o json`,
	"list": `jobweaver list --status FAILED,CANCELLED --ended-since 2h
jobweaver list --trace-id 01936f3e-5f3e-7cc0-8000-0123456789ab
jobweaver list --error-code WORKER.TIMEOUT --owner shop
jobweaver list --search 'connection refused' --since 1d
jobweaver list --ordering-key customer-9
jobweaver list --type EMAIL --limit 200 -o name`,
	"watch": `jobweaver watch ID && echo completed`,
	"logs":  `jobweaver logs ID --attempt 2`,
	"cancel": `jobweaver cancel ID
jobweaver cancel --queue default --status PENDING --wait
jobweaver cancel --all --dry-run`,
	"retry": "jobweaver retry ID\njobweaver retry --status CANCELLED --tag billing",
	"reschedule": `jobweaver reschedule ID --in 10m
jobweaver reschedule --type EMAIL --at 2027-01-02T08:00:00Z`,
	"change": `jobweaver change ID --priority 9 --delay 10m
jobweaver change ID --set payload.to=a@b.example --set expiresAt=null`,
	"run-again": `jobweaver run-again ID --watch
jobweaver run-again ID --set payload.to=a@b.example --set tags=null --priority 5
echo '{"payload":{"steps":[{"type":"LOG","message":"again"}]}}' | jobweaver run-again ID -`,
	"delete":        "jobweaver delete ID\njobweaver delete --status COMPLETED --ended-until 30d --yes",
	"dead":          "jobweaver dead --type EMAIL --ended-since 1d",
	"dead groups":   "jobweaver dead groups --since 1d",
	"dead redrive":  "jobweaver dead redrive --type EMAIL --wait\njobweaver dead redrive --all --dry-run",
	"rejected list": "jobweaver rejected list --topic job-created --redriven false",
	"rejected redrive": `jobweaver rejected redrive --function ingest --since 2h
jobweaver rejected redrive --all --dry-run`,
	"rejected delete": "jobweaver rejected delete --until 7d --yes",
	"batch create": `id=$(jobweaver batch create --name import --on-complete done.json -o name)
jobweaver batch create --file batch.json --closed --wait`,
	"batch get":        "jobweaver batch get ID --wait",
	"flow create":      "id=$(jobweaver flow create flow.json -o name)",
	"flow get":         "jobweaver flow get ID --wait",
	"operations watch": "jobweaver operations watch ID",
	"schedules create": `echo '{"jobType":"SIMULATION","payload":{"steps":[{"type":"LOG","message":"again"}]}}' |
  jobweaver schedules create nightly - --cron '30 2 * * *' --time-zone Europe/Berlin`,
	"schedules change": "jobweaver schedules change nightly --cron '0 4 * * *' --end-at 2027-01-01T00:00:00Z",
	"alerts create":    "jobweaver alerts create charges --type CHARGE --failures 10 --slack - < slack-url",
	"alerts change":    "jobweaver alerts change charges --failures 20 --window-minutes 10",
	"limit": `jobweaver limit type EMAIL --max-running 5 --starts-per-second 10
jobweaver limit type EMAIL --none`,
	"pause":        "jobweaver pause queue default",
	"drain":        "jobweaver drain host-1-k3zr7hxw2c --wait --timeout 1h",
	"queue create": "jobweaver queue create reports\njobweaver queue create images --workers pull",
	"queue remove": "jobweaver queue remove reports --drain --wait",
	"resume":       "jobweaver resume queue default\njobweaver controls -o name | xargs -L1 jobweaver resume",
	"event send":   `jobweaver event send com.shop.paid '{"order":"A-17","cents":900}'`,
	"callback":     `jobweaver callback ID 1 completed '{"shipment":17}'`,
	"outbox": `jobweaver outbox sql --enqueue-role shop --relay-role relay > outbox.sql
jobweaver outbox install postgres://owner@db.example:5432/shop
jobweaver outbox list postgres://relay@db.example:5432/shop --rejected`,
	"work": `jobweaver work --type RESIZE -- ./resize.sh
jobweaver work --type RESIZE --queue pull --slots 4 -- python3 resize.py --quality 80
jobweaver work --type GREET -- sh -c 'read -r in; echo "got $in" >&2; echo progress 50 >&3; echo "\"hello\""'`,
	"types": "jobweaver types EMAIL",
	"mcp":   "JOBWEAVER_API_KEY_FILE=key jobweaver mcp\njobweaver mcp --write",
	"keys":  "jobweaver keys create shop --owner shop --role submit,read --expires-in 2160h",
	"init":  `jobweaver init ts my-shop`,
	"dev": `jobweaver dev --demo
jobweaver dev --port 18080 --dir /tmp/jobweaver
jobweaver dev --only postgres,kafka`,
	"migrate": "DATABASE_URL=postgres://postgres@localhost:5432/postgres jobweaver migrate --roles",
}

// newVersion prints the same as --version: other programs have it as a command, too.
func newVersion() *cobra.Command {
	return cli.Verb("version", "Print the version", 0, func(cmd *cobra.Command, _ []string) error {
		raw, err := json.Marshal(map[string]string{"name": "jobweaver", "version": funchost.Version,
			"commit": funchost.Commit, "date": funchost.Date})
		if err != nil {
			return fmt.Errorf("write version: %w", err)
		}
		return cli.Present(cmd, raw, func(w io.Writer) error {
			_, err := fmt.Fprintln(w, "jobweaver", funchost.Version)
			return err
		})
	})
}

// refuseUnknown makes help fail for what is no command. Cobra's help prints the commands and exits with 0.
func refuseUnknown(help *cobra.Command) {
	help.Run, help.RunE = nil, func(cmd *cobra.Command, args []string) error {
		of, rest, err := cmd.Root().Find(args)
		if err != nil || len(rest) > 0 {
			return cli.Usage("there is no command %q", strings.Join(args, " "))
		}
		of.InitDefaultHelpFlag()
		return of.Help()
	}
}

// arrange groups the commands and adds their examples, and adds the environment to the root command.
func arrange(root *cobra.Command) {
	for _, g := range groups {
		root.AddGroup(&cobra.Group{ID: g.title, Title: g.title + ":"})
		for name := range strings.FieldsSeq(g.commands) {
			cmd, _, err := root.Find([]string{name})
			if err != nil {
				panic(err) // the table is above
			}
			cmd.GroupID = g.title
		}
	}
	root.InitDefaultCompletionCmd() // cobra would add both after the loop below
	root.InitDefaultHelpCmd()
	cli.Each(root, func(cmd *cobra.Command) {
		if cmd.Name() == "help" {
			refuseUnknown(cmd)
		}
		if cmd.HasParent() && !cmd.Runnable() { // an unknown word would print help and exit with 0
			cmd.Args, cmd.RunE = cobra.NoArgs, func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
		}
		text := examples[strings.TrimPrefix(cmd.CommandPath(), "jobweaver ")]
		if text != "" {
			cmd.Example = "  " + strings.ReplaceAll(text, "\n", "\n  ")
		}
	})
	root.SetUsageTemplate(root.UsageTemplate() + "{{if not .HasParent}}" + environment + "{{end}}")
}
