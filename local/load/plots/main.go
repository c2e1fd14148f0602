// Command plots draws the results of the bench: an SVG for each part that was measured. It is a module of
// its own so that its libraries do not become dependencies of JobWeaver.
//
//	plots results.json folder
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
)

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: plots RESULTS FOLDER")
		os.Exit(2)
	}
	if err := run(os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, "plots:", err)
		os.Exit(1)
	}
}

func run(file, folder string) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	var r results
	if err := json.Unmarshal(text, &r); err != nil {
		return fmt.Errorf("read %s: %w", file, err)
	}
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	for _, part := range []struct {
		name     string
		measured bool
		draw     func(results) (picture, error)
	}{
		{"throughput", r.Throughput != nil, drawThroughput},
		{"latency", len(r.Latency) > 0, drawLatency},
		{"backlog", len(r.Backlog) > 0, drawBacklog},
		{"scale", r.Scale != nil, drawScale},
		{"cost", r.Cost != nil, drawCost},
		{"soak", r.Soak != nil, drawSoak},
	} {
		if !part.measured {
			continue
		}
		picture, err := part.draw(r)
		if err != nil {
			return fmt.Errorf("draw %s: %w", part.name, err)
		}
		to := filepath.Join(folder, part.name+".svg")
		if err := picture.write(to); err != nil {
			return fmt.Errorf("write %s: %w", to, err)
		}
		fmt.Println(to)
	}
	return nil
}
