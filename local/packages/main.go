// Command packages writes the Go client as a module proxy serves it: with GOPROXY=file://FOLDER/go, the go command
// finds it there before its tag is pushed.
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/mod/module"
	"golang.org/x/mod/zip"

	"github.com/jobweaver/jobweaver/shared/client"
)

const (
	goPath = "github.com/jobweaver/jobweaver/shared/client"
	source = "shared/client"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: packages FOLDER, in the root of the repository")
		os.Exit(2)
	}
	if err := write(filepath.Join(os.Args[1], "go", goPath, "@v")); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func write(folder string) error {
	version := "v" + client.Version
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	mod, err := os.ReadFile(filepath.Join(source, "go.mod"))
	if err != nil {
		return err
	}
	info, err := json.Marshal(map[string]any{"Version": version, "Time": time.Unix(0, 0).UTC()})
	if err != nil {
		return err
	}
	for name, text := range map[string]string{
		"list": version + "\n", version + ".mod": string(mod), version + ".info": string(info),
	} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o644); err != nil { //nolint:gosec // public
			return err
		}
	}
	archive, err := os.Create(filepath.Join(folder, version+".zip"))
	if err != nil {
		return err
	}
	if err := zip.CreateFromDir(archive, module.Version{Path: goPath, Version: version}, source); err != nil {
		return fmt.Errorf("pack %s: %w", source, err)
	}
	return archive.Close()
}
