package rig

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/jobweaver/jobweaver/migrations"
)

// stampBytes is the size of the entry that a worker's record has for each ended handler: nanoseconds since 1970.
const stampBytes = 8

// Worker is a worker in a process of its own that serves a queue and records when its handlers end.
type Worker struct {
	*Child
	record string
}

// WorkerConfig describes a worker.
type WorkerConfig struct {
	Dir              string
	Name             string
	Server           *Server
	Broker           *Broker
	Slots, SlotQueue int
	Queue            string // empty: Queue
	Sink             string // the URL to which it publishes events; empty: it publishes to Kafka
}

// StartWorker starts a worker. The worker is ready when it has recorded a first handler.
func StartWorker(cfg WorkerConfig) (*Worker, error) {
	url, err := migrations.WithDatabase(cfg.Server.URL(), migrations.Worker.Database())
	if err != nil {
		return nil, err
	}
	w := &Worker{record: filepath.Join(cfg.Dir, cfg.Name+".record")}
	if err := os.MkdirAll(cfg.Dir, 0o700); err != nil {
		return nil, fmt.Errorf("start worker: %w", err)
	}
	if err := os.WriteFile(w.record, nil, 0o600); err != nil {
		return nil, fmt.Errorf("start worker: %w", err)
	}
	env := append(workerEnv(cfg.Slots, cfg.SlotQueue),
		"DATABASE_URL="+url, "KAFKA_BROKERS="+cfg.Broker.Address, "QUEUES="+cmp.Or(cfg.Queue, Queue),
		"K_SINK="+cfg.Sink,
		"HOST=127.0.0.1", "PORT=0", "RECORD="+w.record)
	w.Child, err = startSelf(cfg.Name, cfg.Dir, env, "worker")
	return w, err
}

// Done returns how many handlers have ended.
func (w *Worker) Done() int {
	info, err := os.Stat(w.record)
	if err != nil {
		return 0
	}
	return int(info.Size() / stampBytes)
}

// Instants returns when handlers have ended.
func (w *Worker) Instants() ([]time.Time, error) {
	data, err := os.ReadFile(w.record)
	if err != nil {
		return nil, fmt.Errorf("read record: %w", err)
	}
	instants := make([]time.Time, 0, len(data)/stampBytes)
	for ; len(data) >= stampBytes; data = data[stampBytes:] {
		instants = append(instants, time.Unix(0, int64(binary.LittleEndian.Uint64(data))))
	}
	return instants, nil
}

// AppendStamp adds an instant to a record.
func AppendStamp(record []byte, at time.Time) []byte {
	return binary.LittleEndian.AppendUint64(record, uint64(at.UnixNano()))
}
