// Command grafana writes the dashboards that Grafana is provisioned with.
package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
)

//go:generate go run . dashboards

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: grafana FOLDER")
		os.Exit(2)
	}
	for _, d := range []dashboard{overview, jobs, functions, database} {
		if err := write(os.Args[1], d); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
}

func write(folder string, d dashboard) error {
	var body bytes.Buffer
	to := json.NewEncoder(&body)
	to.SetEscapeHTML(false)
	to.SetIndent("", "  ")
	if err := to.Encode(d.model()); err != nil {
		return fmt.Errorf("encode dashboard %s: %w", d.uid, err)
	}
	return os.WriteFile(filepath.Join(folder, d.uid+".json"), body.Bytes(), 0o644)
}
