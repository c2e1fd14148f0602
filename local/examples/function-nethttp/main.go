// Function-nethttp is a server of net/http with a function for jobs of type FUNCTION. It charges an order, once for
// each job.
package main

import (
	"cmp"
	"crypto/rand"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"os"
	"strings"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
)

type receipt struct {
	Receipt string `json:"receipt"`
	Order   string `json:"order"`
	Cents   int    `json:"cents"`
}

func charge(webhook *standardwebhooks.Webhook) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 1<<20)) // as it was sent: the signature is over it
		if err == nil {
			err = webhook.Verify(body, r.Header)
		}
		if err != nil {
			refuse(w, http.StatusUnauthorized, "SHOP.BAD_SIGNATURE", err.Error())
			return
		}
		var data struct {
			Order *string
			Cents *int
		}
		if err := json.Unmarshal(body, &data); err != nil || data.Order == nil || data.Cents == nil {
			refuse(w, http.StatusBadRequest, "SHOP.BAD_ORDER", `the data has to be {"order": "…", "cents": …}`)
			return
		}
		// The id of the attempt, which is signed too, is <jobId>.<attempt>.
		jobID, _, _ := strings.Cut(r.Header.Get("webhook-id"), ".")
		result, err := once(jobID, func() any { return receipt{rand.Text(), *data.Order, *data.Cents} })
		if err != nil {
			refuse(w, http.StatusInternalServerError, "SHOP.FAILED", err.Error())
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(result)
	}
}

func refuse(w http.ResponseWriter, status int, code, message string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(map[string]string{"errorCode": code, "message": message})
}

func main() {
	webhook, err := standardwebhooks.NewWebhook(os.Getenv("WEBHOOK_SECRET"))
	if err != nil {
		slog.Error("WEBHOOK_SECRET", "error", err)
		os.Exit(1)
	}
	http.Handle("POST /charge", charge(webhook))
	server := &http.Server{
		Addr: os.Getenv("HOST") + ":" + cmp.Or(os.Getenv("PORT"), "8080"), ReadHeaderTimeout: 10 * time.Second,
	}
	slog.Error("the server ended", "error", server.ListenAndServe())
	os.Exit(1)
}
