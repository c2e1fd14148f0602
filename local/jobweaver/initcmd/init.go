// Package initcmd has the command init.
package initcmd

import (
	"bytes"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"text/template"

	"github.com/spf13/cobra"

	"github.com/jobweaver/jobweaver/local/jobweaver/cli"
	"github.com/jobweaver/jobweaver/shared/client"
)

// templates are the projects by kind. A name ends in .tmpl, since go.mod and *.go would be a module of their own.
//
//go:embed all:templates
var templates embed.FS

// start are the commands that run a new project.
var start = map[string]string{
	"go": "go mod tidy\ngo run . worker\ngo run . submit Ada",
	"ts": "npm install\nnpm run worker\nnpm run submit Ada",
	"python": "python3 -m venv .venv && .venv/bin/pip install -r requirements.txt\n" +
		".venv/bin/python worker.py\n.venv/bin/python submit.py Ada",
	"http": "python3 function.py\n./submit.sh Ada",
}

// New makes the command init.
func New() *cobra.Command {
	kinds := slices.Sorted(maps.Keys(start))
	cmd := &cobra.Command{
		Use: "init " + strings.Join(kinds, "|") + " [FOLDER]", Args: cli.Between(1, 2), ValidArgs: kinds,
		Short: "Write a small project that defines a task, runs it, and submits it",
		Long: "Write a small project that defines a task, runs it, and submits it. The project of http is a function\n" +
			"that is called over HTTP. FOLDER is new or empty; by default greetings.",
		RunE: func(cmd *cobra.Command, args []string) error {
			folder := "greetings"
			if len(args) > 1 {
				folder = args[1]
			}
			commands, known := start[args[0]]
			if !known {
				return cli.Usage("%q is none of %s", args[0], strings.Join(kinds, ", "))
			}
			if err := Write(args[0], folder); err != nil {
				return err
			}
			_, err := fmt.Fprintf(cmd.OutOrStdout(), "%s has a project. With jobweaver dev in another terminal, run in it:"+
				"\n\n%s\n", folder, commands)
			return err
		},
	}
	return cmd
}

// Write writes the project of a kind into a folder, which is new or empty.
func Write(kind, folder string) error {
	if found, err := os.ReadDir(folder); err == nil && len(found) > 0 {
		return fmt.Errorf("%s is not empty", folder)
	} else if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	whole, err := filepath.Abs(folder)
	if err != nil {
		return err
	}
	about := struct{ Name, Version string }{nameOf(filepath.Base(whole)), client.Version}
	from := path.Join("templates", kind)
	return fs.WalkDir(templates, from, func(file string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := template.ParseFS(templates, file)
		if err != nil {
			return err
		}
		var written bytes.Buffer
		if err := text.Execute(&written, about); err != nil {
			return err
		}
		to := filepath.Join(folder, filepath.FromSlash(strings.TrimSuffix(strings.TrimPrefix(file, from+"/"), ".tmpl")))
		if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil { //nolint:gosec // a project of the user
			return err
		}
		mode := os.FileMode(0o644)
		if strings.HasSuffix(to, ".sh") {
			mode = 0o755
		}
		return os.WriteFile(to, written.Bytes(), mode)
	})
}

// nameOf makes a name that npm and Go take for a package of a folder's name.
func nameOf(folder string) string {
	name := strings.Trim(strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z' || r >= '0' && r <= '9':
			return r
		case r >= 'A' && r <= 'Z':
			return r + 'a' - 'A'
		}
		return '-'
	}, folder), "-")
	if name == "" {
		return "greetings"
	}
	return name
}
