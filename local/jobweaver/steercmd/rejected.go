package steercmd

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/jobweaver/jobweaver/local/jobweaver/cli"
	"github.com/jobweaver/jobweaver/shared/client"
)

// rejectedRecord is a rejected record. Only show has its key, headers and value.
type rejectedRecord struct {
	ID             string     `json:"id"`
	Function       string     `json:"function"`
	Topic          string     `json:"topic"`
	Partition      *int       `json:"partition"`
	Offset         *int64     `json:"offset"`
	Reason         string     `json:"reason"`
	Bytes          int        `json:"bytes"`
	Truncated      bool       `json:"truncated"`
	RecordedAt     *time.Time `json:"recordedAt"`
	RejectedAt     time.Time  `json:"rejectedAt"`
	RedriveRefusal *string    `json:"redriveRefusal"`
	RedrivenAt     *time.Time `json:"redrivenAt"`
	RedrivenBy     *string    `json:"redrivenBy"`

	Key     *recordBytes `json:"key"`
	Headers []struct {
		Name  string       `json:"name"`
		Value *recordBytes `json:"value"`
	} `json:"headers"`
	Value *recordBytes `json:"value"`
}

type recordBytes struct {
	Encoding string `json:"encoding"`
	Data     string `json:"data"`
}

func (b *recordBytes) String() string {
	switch {
	case b == nil:
		return "-"
	case b.Encoding == "base64":
		return b.Data + " (base64)"
	}
	return b.Data
}

// Place returns the topic, partition and offset of the record.
func (r *rejectedRecord) Place() string {
	if r.Offset == nil || r.Partition == nil {
		return r.Topic + " (over HTTP)"
	}
	return fmt.Sprintf("%s/%d@%d", r.Topic, *r.Partition, *r.Offset)
}

// NewRejected makes the command rejected.
func NewRejected() *cobra.Command {
	return cli.Group("rejected", "Show records that no function could use, for administrators of the installation",
		newRejectedList(),
		cli.Verb("show ID", "Show a rejected record with its key, headers and value", 1,
			func(cmd *cobra.Command, args []string) error {
				return cli.Show(cmd, cli.Path("rejected", args[0]), showRejectedRecord)
			}),
		(&rejectedCommand{
			name: "redrive", done: "redriven", method: http.MethodPost, below: []string{"redrive"},
			short: "Put a rejected record on its topic again, or many",
		}).cobra(),
		(&rejectedCommand{
			name: "delete", done: "deleted", method: http.MethodDelete, short: "Delete a rejected record, or many",
		}).cobra())
}

// rejectedFilter selects rejected records.
type rejectedFilter map[string]*string

func (f rejectedFilter) register(cmd *cobra.Command) {
	for name, usage := range map[string]string{
		"function": "only records that this function rejected", "topic": "only records of this topic",
		"since": "only records rejected at this instant or later: RFC 3339, or an age such as 90m or 3d",
		"until": "only records rejected before this instant",
	} {
		f[name] = cli.QueryFlag(cmd, name, usage)
	}
}

func (f rejectedFilter) query() url.Values {
	query := url.Values{}
	for name, value := range f {
		if *value != "" {
			query.Set(name, *value)
		}
	}
	return query
}

// RejectedPage is a page of rejected records.
type RejectedPage struct {
	Rejected   []rejectedRecord
	NextCursor *string
}

func newRejectedList() *cobra.Command {
	filter := rejectedFilter{}
	var page cli.PageFlags
	var redriven string
	list := cli.Verb("list", "List rejected records, the latest first", 0, func(cmd *cobra.Command, _ []string) error {
		query := page.AddTo(filter.query())
		if redriven != "" {
			query.Set("redriven", redriven)
		}
		return cli.Show(cmd, cli.Path("rejected")+"?"+query.Encode(), func(w io.Writer, p RejectedPage) error {
			defer cli.MoreOf(cmd, p.NextCursor)
			return showRejected(w, p.Rejected)
		})
	})
	filter.register(list)
	list.Flags().StringVar(&redriven, "redriven", "", "true: only redriven records; false: only others")
	page.Register(list)
	return list
}

func showRejected(w io.Writer, records []rejectedRecord) error {
	head := "ID\tREJECTED\tBY\tRECORD\tBYTES\tREDRIVEN\tREASON"
	return cli.Table(w, head, "no rejected records", len(records), func(i int) []any {
		r := &records[i]
		redriven := cli.AtOrDash(r.RedrivenAt)
		if r.RedrivenAt == nil && r.RedriveRefusal != nil {
			redriven = "cannot be"
		}
		return []any{r.ID, cli.At(&r.RejectedAt), r.Function, r.Place(), r.Bytes, redriven, r.Reason}
	})
}

func showRejectedRecord(w io.Writer, r rejectedRecord) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	field := func(name string, value any) { fmt.Fprintf(t, "%s\t%s\n", cli.Line(name), cli.Line(fmt.Sprint(value))) }
	field("rejected record", r.ID)
	field("of", r.Place())
	field("by", fmt.Sprintf("%s, at %s", r.Function, cli.At(&r.RejectedAt)))
	field("reason", r.Reason)
	field("recorded", cli.AtOrDash(r.RecordedAt))
	if r.Truncated {
		field("truncated", "what follows is cut")
	}
	switch {
	case r.RedrivenAt != nil:
		field("redriven", fmt.Sprintf("at %s by %s", cli.At(r.RedrivenAt), cli.OrDash(r.RedrivenBy)))
	case r.RedriveRefusal != nil:
		field("redrive", "refused: "+*r.RedriveRefusal)
	}
	field("key", r.Key)
	for _, header := range r.Headers {
		field("header "+header.Name, header.Value)
	}
	field("value", r.Value)
	return t.Flush()
}

// rejectedCommand is a command for one record, or for many: for records given by id, or for all that match a filter.
type rejectedCommand struct {
	name, done, short string
	method            string
	below             []string // of the path, after the id
	filter            rejectedFilter
	all               bool
	confirm           cli.ConfirmFlags
}

func (c *rejectedCommand) cobra() *cobra.Command {
	c.filter = rejectedFilter{}
	cmd := &cobra.Command{
		Use: c.name + " [ID…]", Short: c.short + " by their ids or by a filter", RunE: c.run,
	}
	c.filter.register(cmd)
	cmd.Flags().BoolVar(&c.all, "all", false, "all rejected records")
	c.confirm.Register(cmd)
	return cmd
}

func (c *rejectedCommand) run(cmd *cobra.Command, ids []string) error {
	query := c.filter.query()
	switch chosen := len(query) > 0 || c.all; {
	case len(ids) > 0 && (chosen || c.confirm.DryRun):
		return cli.Usage("either ids of rejected records, or a filter (--dry-run goes with a filter)")
	case len(ids) == 1:
		return cli.Call(cmd, c.method, c.path(ids[0]), nil, func(w io.Writer, r rejectedRecord) error {
			_, err := fmt.Fprintf(w, "%s is %s\n", cli.Line(r.Place()), c.done)
			return err
		})
	case len(ids) == 0 && !chosen:
		return cli.Usage("which rejected records? Name some, or give a filter, such as --topic job-created or --all")
	case c.all && len(query) > 0:
		return cli.Usage("--all goes without another filter")
	case len(ids) == 0:
		return c.many(cmd, query)
	}
	return c.giveTo(cmd, ids)
}

func (c *rejectedCommand) path(id string) string {
	return cli.Path(append([]string{"rejected", id}, c.below...)...)
}

// many sends the command to all records that match. It asks first, because a filter may match more records than
// intended.
func (c *rejectedCommand) many(cmd *cobra.Command, query url.Values) error {
	wide := c.all || c.name == "delete"
	if wide && !c.confirm.Yes && !c.confirm.DryRun && !cli.IsTerminal(cmd.InOrStdin()) {
		return cli.Usage("%s all rejected records that match? Add --yes; --dry-run prints how many there are", c.name)
	}
	if c.name == "redrive" {
		query.Set("redriven", "false")
	}
	records, err := matchingRejected(cmd, query)
	if err != nil {
		return err
	}
	ids := make([]string, len(records))
	for i, r := range records {
		ids[i] = r.ID
	}
	if c.confirm.DryRun {
		return c.showMatching(cmd, records)
	}
	if wide && !c.confirm.Yes && len(ids) > 0 {
		if ok, err := cli.Ask(cmd, fmt.Sprintf("%s %s?", c.name, counted(len(ids)))); err != nil || !ok {
			return err
		}
	}
	return c.giveTo(cmd, ids)
}

// matchingRejected returns all records that match: there are never more than some thousands.
func matchingRejected(cmd *cobra.Command, query url.Values) (all []rejectedRecord, err error) {
	query.Set("limit", strconv.Itoa(cli.PageMost))
	for {
		var page RejectedPage
		_, err := cli.API(cmd).Do(cmd.Context(), http.MethodGet, cli.Path("rejected")+"?"+query.Encode(), "", nil, &page)
		if err != nil {
			return nil, err
		}
		all = append(all, page.Rejected...)
		if page.NextCursor == nil {
			return all, nil
		}
		query.Set("cursor", *page.NextCursor)
	}
}

func counted(records int) string {
	if records == 1 {
		return "1 rejected record"
	}
	return fmt.Sprintf("%d rejected records", records)
}

// rejectedID names a record in the output.
type rejectedID struct {
	ID string `json:"id"`
}

// rejectedResult is the result of a command for many records, or the one that it would have.
type rejectedResult struct {
	Command string           `json:"command"`
	Count   int              `json:"count"` // the records that match
	Refused int              `json:"refused"`
	Reasons []rejectedReason `json:"reasons"`
	Records []rejectedID     `json:"records"` // the records for which the command was carried out
}

type rejectedReason struct {
	Reason  string `json:"reason"`
	Records int    `json:"records"`
}

func (r *rejectedResult) refuse(reason string) {
	r.Refused++
	for i := range r.Reasons {
		if r.Reasons[i].Reason == reason {
			r.Reasons[i].Records++
			return
		}
	}
	r.Reasons = append(r.Reasons, rejectedReason{reason, 1})
}

func (r *rejectedResult) present(cmd *cobra.Command, done string) error {
	slices.SortStableFunc(r.Reasons, func(a, b rejectedReason) int { return cmp.Compare(b.Records, a.Records) })
	raw, err := json.Marshal(r)
	if err != nil {
		return fmt.Errorf("write answer: %w", err)
	}
	return cli.Present(cmd, raw, func(w io.Writer) error {
		fmt.Fprintf(w, "%s %s\n", counted(len(r.Records)), done)
		for _, reason := range r.Reasons {
			fmt.Fprintf(w, "  %d refused: %s\n", reason.Records, cli.Line(reason.Reason))
		}
		return nil
	})
}

// showMatching prints the output of --dry-run.
func (c *rejectedCommand) showMatching(cmd *cobra.Command, records []rejectedRecord) error {
	result := rejectedResult{Command: c.name, Count: len(records), Reasons: []rejectedReason{}, Records: []rejectedID{}}
	for _, r := range records {
		if c.name == "redrive" && r.RedriveRefusal != nil {
			result.refuse(*r.RedriveRefusal)
			continue
		}
		result.Records = append(result.Records, rejectedID{r.ID})
	}
	return result.present(cmd, "would be "+c.done+"; nothing was done")
}

// giveTo sends the command for one record after another. A refused or missing record does not stop the others; any
// other error does, after the results so far are printed.
func (c *rejectedCommand) giveTo(cmd *cobra.Command, ids []string) error {
	result := rejectedResult{Command: c.name, Count: len(ids), Reasons: []rejectedReason{}, Records: []rejectedID{}}
	bar := newRecordsBar(cmd, c.name, len(ids))
	var failed error
	for _, id := range ids {
		_, err := cli.API(cmd).Do(cmd.Context(), c.method, c.path(id), "", nil, nil)
		var refused *client.Error
		switch {
		case err == nil:
			result.Records = append(result.Records, rejectedID{id})
		case errors.As(err, &refused) && (refused.Status == http.StatusConflict || refused.Status == http.StatusNotFound):
			result.refuse(strings.TrimPrefix(refused.Message, "the record is not redriven: "))
		default:
			failed = err
		}
		if failed != nil {
			break
		}
		bar.add()
	}
	bar.finish()
	err := result.present(cmd, c.done)
	switch {
	case failed != nil:
		return failed
	case err == nil && result.Refused > 0:
		return cli.ExitCode(cli.ExitRefused)
	}
	return err
}
