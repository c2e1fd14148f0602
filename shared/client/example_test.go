package client_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"time"

	"github.com/jobweaver/jobweaver/shared/client"
)

// gateway is a server that answers the examples like a gateway.
func gateway() *httptest.Server {
	mux := http.NewServeMux()
	answer := func(status int, body string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(status)
			_, _ = io.WriteString(w, body)
		}
	}
	done := `{"jobId": "j1", "jobType": "REPORT", "status": "COMPLETED", "output": {"pages": 3}}`
	mux.HandleFunc("POST /api/jobs", answer(http.StatusAccepted, `{"jobId": "j1", "status": "PENDING"}`))
	mux.HandleFunc("POST /api/jobs/batch", answer(http.StatusOK, `{"results": [{"status": 202, "jobId": "j1"},
		{"status": 400, "error": {"status": 400, "errorCode": "API.INVALID_JOB_REQUEST", "message": "invalid job request"}}]}`))
	mux.HandleFunc("GET /api/jobs/j1", answer(http.StatusOK, done))
	mux.HandleFunc("GET /api/jobs", answer(http.StatusOK, `{"jobs": [`+done+`], "nextCursor": null}`))
	mux.HandleFunc("POST /api/jobs/j1/cancel", answer(http.StatusConflict,
		`{"status": 409, "errorCode": "API.INVALID_STATE_TRANSITION", "message": "the job is COMPLETED"}`))
	mux.HandleFunc("GET /api/stream", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, "event: job\ndata: "+done+"\n\n")
	})
	return httptest.NewServer(mux)
}

func Example() {
	server := gateway()
	defer server.Close()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()

	jobs := client.New(server.URL, "")
	job, err := jobs.Run(ctx, client.JobRequest{
		JobType: "REPORT", Payload: map[string]any{"month": "2026-11"}, IdempotencyKey: "report-2026-11",
	})
	var output struct{ Pages int }
	if err == nil {
		err = job.DecodeOutput(&output)
	}
	fmt.Println(output.Pages, err)
	// Output: 3 <nil>
}

func ExampleClient_SubmitBatch() {
	server := gateway()
	defer server.Close()

	results, err := client.New(server.URL, "").SubmitBatch(context.Background(), []client.JobRequest{
		{JobType: "EMAIL", Payload: map[string]any{"to": []string{"a@example.org"}}},
		{JobType: "EMAIL"},
	})
	for _, result := range results {
		fmt.Println(result.Status, result.JobID, result.Error != nil)
	}
	fmt.Println(err)
	// Output:
	// 202 j1 false
	// 400  true
	// <nil>
}

func ExampleClient_List() {
	server := gateway()
	defer server.Close()

	for job, err := range client.New(server.URL, "").List(context.Background(), client.Filter{Status: []string{client.Completed}}) {
		fmt.Println(job.JobID, err)
	}
	// Output: j1 <nil>
}

func ExampleClient_StreamJob() {
	server := gateway()
	defer server.Close()

	for event, err := range client.New(server.URL, "").StreamJob(context.Background(), "j1") {
		if err != nil {
			fmt.Println(err)
			return
		}
		if event.Name == client.EventJob && event.Job.Terminal() {
			fmt.Println(event.Job.Status)
			return
		}
	}
	// Output: COMPLETED
}

func ExampleError() {
	server := gateway()
	defer server.Close()

	err := client.New(server.URL, "").Cancel(context.Background(), "j1")
	var refused *client.Error
	if errors.As(err, &refused) {
		fmt.Println(refused.ErrorCode, errors.Is(err, client.ErrConflict))
	}
	// Output: API.INVALID_STATE_TRANSITION true
}

func ExampleWebhook() {
	hook, err := client.NewWebhook("whsec_bmV3IG5ldyBuZXcgbmV3IG5ldyBuZXc=") // from `jobweaver webhook-secrets end`
	if err != nil {
		fmt.Println(err)
		return
	}
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		end, err := hook.VerifyRequest(r)
		if err != nil {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		fmt.Println(end.ID, end.Job.Status)
		w.WriteHeader(http.StatusNoContent)
	})
	answer := httptest.NewRecorder()
	handler.ServeHTTP(answer, httptest.NewRequest(http.MethodPost, "/done", http.NoBody))
	fmt.Println(answer.Code)
	// Output: 401
}

// In the transaction that writes your own data: if it commits, there is a job; if it rolls back, there is none.
func ExampleJobRequest_EnqueueSQL() {
	enqueue := func(ctx context.Context, tx *sql.Tx, order string) (jobID string, err error) {
		statement, arguments, err := client.JobRequest{JobType: "INVOICE", Payload: map[string]any{"order": order}}.EnqueueSQL()
		if err != nil {
			return "", err
		}
		err = tx.QueryRowContext(ctx, statement, arguments...).Scan(&jobID)
		return jobID, err
	}
	fmt.Printf("%T\n", enqueue)
	// Output: func(context.Context, *sql.Tx, string) (string, error)
}
