// Command function-pages is a function that goes on where its last attempt ended: it does a hundred pages of a book in
// each attempt.
package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"time"
)

func convert(w http.ResponseWriter, r *http.Request) {
	var book struct{ Pages int }
	page := 0
	if saved := r.Header.Get("X-Checkpoint"); saved != "" {
		if err := json.Unmarshal([]byte(saved), &page); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
	}
	if err := json.NewDecoder(r.Body).Decode(&book); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	page = min(page+100, book.Pages) // here the work is done
	if page < book.Pages {
		w.Header().Set("X-Checkpoint", fmt.Sprint(page))
		w.Header().Set("X-Snooze-Ms", "1")
		w.WriteHeader(http.StatusNoContent)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = fmt.Fprintf(w, `{"pages": %d}`, page)
}

func main() {
	http.HandleFunc("POST /{$}", convert)
	server := &http.Server{Addr: "localhost:" + cmp.Or(os.Getenv("PORT"), "9000"), ReadHeaderTimeout: time.Minute}
	slog.Error("cannot serve", "error", server.ListenAndServe())
	os.Exit(1)
}
