package main

import (
	"cmp"
	"crypto/rand"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// once returns the result of the first attempt of a job that had one. Here a file keeps it; in your database, a row
// with the job's id as its key, written in the transaction of the work.
func once(jobID string, work func() any) ([]byte, error) {
	folder := cmp.Or(os.Getenv("RECEIPTS"), "receipts")
	path := filepath.Join(folder, jobID+".json")
	if saved, err := os.ReadFile(path); !errors.Is(err, fs.ErrNotExist) {
		return saved, err
	}
	result, err := json.Marshal(work())
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(folder, 0o750); err != nil {
		return nil, err
	}
	draft := path + "." + rand.Text()
	if err := os.WriteFile(draft, result, 0o600); err != nil {
		return nil, err
	}
	defer func() { _ = os.Remove(draft) }()
	if err := os.Link(draft, path); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, err
	}
	return os.ReadFile(path) // of another attempt, if that was faster
}
