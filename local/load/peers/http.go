package main

import (
	"encoding/json"
	"net/http"
	"sync"
	"time"
)

// load is a number of jobs that a peer with a protocol of its own pushes itself.
type load struct {
	Jobs    int `json:"jobs"`
	Clients int `json:"clients"`
	Batch   int `json:"batch"`
}

func routes(p peer, ran *handlers) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /jobs", func(w http.ResponseWriter, r *http.Request) {
		var body struct {
			Jobs []json.RawMessage `json:"jobs"`
		}
		err := json.NewDecoder(r.Body).Decode(&body)
		if err == nil {
			payloads := make([][]byte, len(body.Jobs))
			for i, job := range body.Jobs {
				payloads[i] = job
			}
			err = p.store(r.Context(), payloads)
		}
		answer(w, struct{}{}, err)
	})
	mux.HandleFunc("POST /load", func(w http.ResponseWriter, r *http.Request) {
		var body load
		err := json.NewDecoder(r.Body).Decode(&body)
		if err == nil {
			err = p.load(r.Context(), body)
		}
		answer(w, struct{}{}, err)
	})
	mux.HandleFunc("GET /state", func(w http.ResponseWriter, _ *http.Request) {
		open, err := p.open()
		answer(w, map[string]any{"open": open, "ran": ran.count()}, err)
	})
	mux.HandleFunc("GET /starts", func(w http.ResponseWriter, _ *http.Request) { answer(w, ran.instants(), nil) })
	return mux
}

func answer(w http.ResponseWriter, body any, err error) {
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(body) // an error means that the client has gone
}

// handlers counts the handlers that ran, and keeps when they began.
type handlers struct {
	mu     sync.Mutex
	ran    int
	starts map[int]int64
}

// began notes a start. The latency part numbers its jobs from 1; the others have no number.
func (h *handlers) began(payload []byte) {
	now := time.Now().UnixMicro()
	var job struct {
		Num int `json:"num"`
	}
	_ = json.Unmarshal(payload, &job) // another payload has no number
	h.mu.Lock()
	defer h.mu.Unlock()
	h.ran++
	if job.Num == 0 {
		return
	}
	if h.starts == nil {
		h.starts = map[int]int64{}
	}
	h.starts[job.Num] = now
}

func (h *handlers) count() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.ran
}

func (h *handlers) instants() map[int]int64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	starts := make(map[int]int64, len(h.starts))
	for num, at := range h.starts {
		starts[num] = at
	}
	return starts
}
