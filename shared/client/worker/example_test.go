package worker_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"

	"github.com/jobweaver/jobweaver/shared/client"
	"github.com/jobweaver/jobweaver/shared/client/worker"
)

type image struct {
	Path  string `json:"path"`
	Width int    `json:"width"`
}

type resized struct {
	Width int `json:"width"`
}

// resize is a handler: it ends with its context, logs for people, and returns what the job's client reads.
func resize(ctx context.Context, a *worker.Attempt, in image) (resized, error) {
	if in.Path == "/" {
		return resized{}, &worker.Failure{Code: "RESIZE.NO_IMAGE", Message: "a folder is no image"} // never retried
	}
	a.Log(slog.LevelInfo, "resizing "+in.Path)
	for percent := range 100 {
		if ctx.Err() != nil {
			return resized{}, context.Cause(ctx)
		}
		a.Progress(percent, "")
	}
	return resized{Width: in.Width}, nil
}

func Example() {
	ctx, stop := context.WithCancel(context.Background()) // signal.NotifyContext in a program
	defer stop()
	server := gatewayWithOneJob(stop)
	defer server.Close()

	w := worker.New(client.New(server.URL, "the key"), worker.Options{Slots: 4})
	worker.Handle(w, "RESIZE", resize)
	fmt.Println(w.Run(ctx))
	// Output:
	// {"token":"t1","status":"COMPLETED","output":{"width":640}}
	// <nil>
}

// gatewayWithOneJob is a gateway with one job. It calls settled when it has received the result.
func gatewayWithOneJob(settled func()) *httptest.Server {
	mux := http.NewServeMux()
	jobs := make(chan string, 1)
	jobs <- `{"attempts": [{"jobId": "j1", "attempt": 1, "token": "t1", "jobType": "RESIZE",
		"payload": {"path": "a.png", "width": 640}, "deadline": "2999-01-01T00:00:00Z"}]}`
	mux.HandleFunc("POST /api/workers/claim", func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // otherwise the server would not notice that its client has disconnected
		select {
		case job := <-jobs:
			fmt.Fprint(w, job)
		case <-r.Context().Done():
		}
	})
	mux.HandleFunc("POST /api/workers/heartbeat", func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, `{"cancelled": [], "lost": []}`)
	})
	mux.HandleFunc("POST /api/workers/settle", func(w http.ResponseWriter, r *http.Request) {
		fmt.Println(resultIn(r))
		fmt.Fprint(w, `{"results": [{"token": "t1", "status": 200}]}`)
		settled()
	})
	return httptest.NewServer(mux)
}
