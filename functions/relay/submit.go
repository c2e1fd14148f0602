package relay

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"

	"github.com/jobweaver/jobweaver/shared/client"
	"github.com/jobweaver/jobweaver/shared/outboxdb"
)

// submit submits rows to the gateway in one batch. The verdict has the errors of single jobs. The error concerns the
// gateway or the whole batch: then the result of the rows that the verdict does not name is unknown.
func (s *source) submit(ctx context.Context, rows []outboxdb.Row) (v outboxdb.Verdict, err error) {
	var answer struct {
		Results []struct {
			Status int
			Error  struct {
				ErrorCode, Message string
			}
		}
	}
	_, err = s.gateway.Do(ctx, http.MethodPost, "/api/jobs/batch", "application/json", batch(rows), &answer)
	if refused := new(client.Error); errors.As(err, &refused) && isAboutTheBody(refused.Status) {
		return s.divide(ctx, rows, refused)
	}
	if err == nil && len(answer.Results) != len(rows) {
		err = fmt.Errorf("%d jobs have %d results", len(rows), len(answer.Results))
	}
	if err != nil {
		return v, err
	}
	for i, result := range answer.Results {
		switch {
		case result.Status >= 200 && result.Status < 300:
			v.Accepted = append(v.Accepted, rows[i].Position)
		case result.Status >= 400 && result.Status < 500 && !isForNow(result.Status):
			v.Reject(rows[i].Position, outboxdb.Rejection{
				Status: result.Status, Code: result.Error.ErrorCode, Message: result.Error.Message,
			})
		default:
			err = fmt.Errorf("job %s: %d %s", rows[i].ID, result.Status, result.Error.Message)
		}
	}
	return v, err
}

// divide finds the job for which a gateway refuses a whole batch.
func (s *source) divide(ctx context.Context, rows []outboxdb.Row, why *client.Error) (v outboxdb.Verdict, err error) {
	if len(rows) == 1 {
		v.Reject(rows[0].Position, outboxdb.Rejection{Status: why.Status, Code: why.ErrorCode, Message: why.Message})
		return v, nil
	}
	v, err = s.submit(ctx, rows[:len(rows)/2])
	if err != nil {
		return v, err
	}
	rest, err := s.submit(ctx, rows[len(rows)/2:])
	v.Accepted = append(v.Accepted, rest.Accepted...)
	for position, why := range rest.Rejected {
		v.Reject(position, why)
	}
	return v, err
}

// isAboutTheBody reports whether an error concerns the jobs, which are in the body, and not the submitter, which the
// headers name.
func isAboutTheBody(status int) bool {
	return status == http.StatusBadRequest || status == http.StatusRequestEntityTooLarge ||
		status == http.StatusUnprocessableEntity
}

// isForNow reports whether the same job may be accepted later.
func isForNow(status int) bool {
	return status == http.StatusRequestTimeout || status == http.StatusTooManyRequests
}

// batch returns the body for rows. Their payloads and options are JSON as PostgreSQL writes it.
func batch(rows []outboxdb.Row) []byte {
	size := 16
	for i := range rows {
		size += len(rows[i].Payload) + len(rows[i].Options) + len(rows[i].JobType) + 96
	}
	body := append(make([]byte, 0, size), `{"jobs":[`...)
	for i := range rows {
		if i > 0 {
			body = append(body, ',')
		}
		body = append(append(append(body, `{"jobId":"`...), rows[i].ID.String()...), `","jobType":`...)
		body = strconv.AppendQuote(body, rows[i].JobType) // it has only letters, digits, dots, dashes and underscores
		body = append(append(body, `,"payload":`...), rows[i].Payload...)
		if options := rows[i].Options; options != "{}" {
			body = append(append(body, ','), options[1:len(options)-1]...)
		}
		body = append(body, '}')
	}
	return append(body, "]}"...)
}
