package handlers

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/jobweaver/jobweaver/functions/runjob/handlers/reportdb"
	"github.com/jobweaver/jobweaver/functions/runjob/handlers/reportfile"
	"github.com/jobweaver/jobweaver/functions/runjob/handlers/reportstore"
	"github.com/jobweaver/jobweaver/shared/apierror"
	"github.com/jobweaver/jobweaver/shared/secret"
)

// ReportConfig has the settings of where REPORT reads rows and stores files.
type ReportConfig struct {
	Bucket      string      `envconfig:"REPORT_BUCKET" desc:"where reports are stored: file:///folder or s3://bucket?region=…; without it, REPORT fails"`
	Queries     string      `envconfig:"REPORT_QUERIES" desc:"file, YAML or JSON, with the queries that a report may use"`
	DatabaseURL secret.Text `envconfig:"REPORT_DATABASE_URL" infile:"file:" desc:"database for these queries; use a role that can only read"`
}

// progressEvery is how often a report reports its progress.
const progressEvery = 400 * time.Millisecond

// Report runs jobs of type REPORT: rows, given or read by a named query, rendered and stored.
type Report struct {
	store *reportstore.Store // nil: not configured
	rows  *reportdb.Store    // nil: no database
}

// NewReport returns the handler. An error begins with the setting's name. Close it when no attempt runs.
func NewReport(cfg ReportConfig) (_ *Report, err error) {
	r := &Report{}
	defer func() {
		if err != nil {
			r.Close()
		}
	}()
	var queries map[string]*reportdb.Query
	if cfg.Queries != "" {
		if queries, err = reportdb.ReadQueries(cfg.Queries); err != nil {
			return nil, fmt.Errorf("REPORT_QUERIES: %w", err)
		}
	}
	if cfg.DatabaseURL.IsSet() {
		if r.rows, err = reportdb.Open(cfg.DatabaseURL.Reveal(), queries); err != nil {
			return nil, fmt.Errorf("REPORT_DATABASE_URL: %w", err)
		}
	}
	if cfg.Bucket != "" {
		if r.store, err = reportstore.Open(cfg.Bucket); err != nil {
			return nil, fmt.Errorf("REPORT_BUCKET: %w", err)
		}
	}
	return r, nil
}

// Close closes the store and the database.
func (r *Report) Close() {
	if r.rows != nil {
		r.rows.Close()
	}
	if r.store != nil {
		r.store.Close()
	}
}

// Run implements Handler.
func (r *Report) Run(ctx context.Context, a *Attempt) (Result, error) {
	p, err := parseReport(a.Payload)
	if err == nil {
		err = r.configured(p)
	}
	if err != nil {
		return Result{}, reportFailure(ctx, err)
	}
	run := &reportRun{ctx: ctx, attempt: a, payload: p, store: r.store}
	defer run.abort()
	if p.Query != "" {
		err = run.query(r.rows)
	} else {
		err = run.inline()
	}
	if err == nil {
		err = run.commit()
	}
	if err != nil {
		return Result{}, reportFailure(ctx, err)
	}
	output, err := json.Marshal(run.done)
	return Result{Output: output}, err
}

func (r *Report) configured(p *reportPayload) error {
	switch {
	case r.store == nil:
		return notConfigured("REPORT_BUCKET")
	case p.Query != "" && r.rows == nil:
		return notConfigured("REPORT_DATABASE_URL")
	}
	return nil
}

// reportFailure returns the failure for an error, retryable if another attempt may help.
func reportFailure(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	failure, problem, invalid := new(Failure), new(reportProblem), new(reportdb.InvalidError)
	broken := new(reportdb.ConnectionError)
	fail := func(code apierror.Code, retryable bool) error {
		return &Failure{Code: string(code), Message: err.Error(), Retryable: retryable, Private: true} // it may quote rows
	}
	switch {
	case errors.As(err, &failure):
		return failure
	case errors.As(err, &problem):
		return fail(apierror.InvalidPayload, false)
	case errors.As(err, &invalid):
		err = payloadError(invalid.Path, "%s", invalid.Reason)
		return fail(apierror.InvalidPayload, false)
	case errors.Is(err, reportfile.ErrTotal):
		return fail(apierror.InvalidPayload, false)
	case errors.Is(err, reportfile.ErrLimit):
		return fail(apierror.ReportTooLarge, false)
	case errors.As(err, &broken):
		retryable := errors.Is(err, reportdb.ErrUnavailable)
		return &Failure{
			Code: string(apierror.ReportQueryFailed), Message: err.Error(), Retryable: retryable, Cause: broken.Cause,
		}
	case errors.Is(err, reportdb.ErrFailed):
		return fail(apierror.ReportQueryFailed, false)
	case errors.Is(err, reportdb.ErrUnavailable):
		return fail(apierror.ReportQueryFailed, true)
	default: // a full disk, an unavailable bucket, a missing right: an operator can repair all of them
		return &Failure{
			Code: string(apierror.ReportNotStored), Retryable: true, Cause: err,
			Message: "the report could not be stored: " + cmp.Or(reportstore.Refusal(err), reason(err)),
		}
	}
}

// reportOutput is a job's output.
type reportOutput struct {
	Location    string `json:"location"`
	ContentType string `json:"contentType"`
	Size        int64  `json:"size"`
	SHA256      string `json:"sha256"`
	Rows        int    `json:"rows"`
}

// reportRun is one report in progress.
type reportRun struct {
	ctx     context.Context
	attempt *Attempt
	payload *reportPayload
	store   *reportstore.Store

	file       *reportstore.File // nil: not begun, or ended
	report     *reportfile.File  // nil: not begun
	done       reportOutput
	total      int       // rows; 0: not known
	reportedAt time.Time // when the progress was last reported
}

// begin creates the file, once the columns are known.
func (r *reportRun) begin(columns []reportColumn) (err error) {
	format := r.payload.Format
	r.file, err = r.store.Create(r.ctx, r.attempt.JobID.String(),
		strconv.Itoa(r.attempt.Number)+"."+string(format), format.ContentType())
	if err != nil {
		return err
	}
	shown := make([]reportfile.Column, len(columns))
	for i, c := range columns {
		shown[i] = c.file()
	}
	r.reportedAt = time.Now()
	r.report, err = reportfile.New(r.ctx, r.file, format, r.payload.Title, shown)
	return err
}

func (r *reportRun) inline() error {
	rows, err := newInlineRows(r.payload.Rows, r.payload.Columns)
	if err != nil {
		return err
	}
	if err := r.begin(rows.columns); err != nil {
		return err
	}
	r.total = rows.count
	return rows.render(r.report, r.progress)
}

// progress reports the progress a few times a second. It also returns an error if the attempt has ended.
func (r *reportRun) progress(rows int) error {
	if now := time.Now(); now.Sub(r.reportedAt) >= progressEvery {
		r.reportedAt = now
		text := strconv.Itoa(rows) + " rows"
		if r.total == 0 {
			r.attempt.Progress(0, text)
		} else {
			r.attempt.Progress(rows*100/r.total, text+" of "+strconv.Itoa(r.total))
		}
	}
	return context.Cause(r.ctx)
}

// commit ends the report and stores its file.
func (r *reportRun) commit() error {
	if err := r.report.End(); err != nil {
		return err
	}
	err := r.file.Commit()
	r.done = reportOutput{
		Location: r.file.Location, ContentType: r.payload.Format.ContentType(),
		Size: r.file.Size, SHA256: r.file.SHA256(), Rows: r.report.Rows(),
	}
	r.file = nil
	return err
}

// abort removes everything that was not committed.
func (r *reportRun) abort() {
	if r.report != nil {
		_ = r.report.Close() // it only removes a temporary file, if there is one
	}
	if r.file != nil {
		r.file.Abort()
	}
}
