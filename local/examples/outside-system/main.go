// Command outside-system accepts jobs of type EXTERNAL and prints how to call back. It does no work itself.
package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
)

func main() {
	http.HandleFunc("POST /", func(w http.ResponseWriter, r *http.Request) {
		var call struct {
			JobID    string          `json:"jobId"`
			Attempt  int             `json:"attempt"`
			Data     json.RawMessage `json:"data"`
			Callback struct {
				URL    string `json:"url"`
				Secret string `json:"secret"`
			} `json:"callback"`
		}
		if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, 1<<20)).Decode(&call); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		fmt.Printf("job %s, attempt %d: %s\ncallback to %s with the secret %s\n",
			call.JobID, call.Attempt, call.Data, call.Callback.URL, call.Callback.Secret)
		w.WriteHeader(http.StatusAccepted)
	})
	// On the loopback interface only: it checks no signature and prints secrets.
	address := net.JoinHostPort("127.0.0.1", cmp.Or(os.Getenv("PORT"), "9001"))
	slog.Error("cannot serve", "error", http.ListenAndServe(address, nil)) //nolint:gosec // no timeouts: an example
	os.Exit(1)
}
