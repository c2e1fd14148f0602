// Package shortlived reads secrets that are valid for a short time: a sidecar renews a file, or a command prints one.
package shortlived

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"
)

const (
	// patience is how long a command may take.
	patience = 10 * time.Second
	// killPatience is how long its output stays open after it was killed: a process of its own may hold it.
	killPatience = time.Second
	// shownLimit is how much of what a command writes to its standard error an error shows.
	shownLimit = 300
)

// Source is where a secret is read; at most one of the two is set.
type Source struct {
	File    string
	Command string // of a shell
}

// IsSet reports whether there is a file or a command.
func (s Source) IsSet() bool { return s != Source{} }

// Read returns the secret of this moment, without the end of its line. The command gets env beside the environment of
// this process. An error shows nothing of what a file has or a command prints.
func (s Source) Read(ctx context.Context, env ...string) (string, error) {
	var text []byte
	var err error
	if s.Command != "" {
		text, err = run(ctx, s.Command, env, patience)
	} else if text, err = os.ReadFile(s.File); err != nil {
		err = errors.New(err.Error()) // without its cause, which looks like an error of the network
	}
	if err != nil {
		return "", err
	}
	secret := strings.TrimRight(string(text), "\r\n")
	if secret == "" {
		return "", errors.New("it is empty")
	}
	return secret, nil
}

func run(ctx context.Context, command string, env []string, patience time.Duration) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, "sh", "-c", command)
	cmd.Env = append(os.Environ(), env...)
	cmd.WaitDelay = killPatience
	endTogether(cmd)
	var out, trouble bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &trouble
	err := cmd.Run()
	switch {
	case err == nil:
		return out.Bytes(), nil
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return nil, fmt.Errorf("the command has not ended within %s", patience)
	}
	return nil, fmt.Errorf("the command failed: %s: %.*s", err.Error(), shownLimit, strings.TrimSpace(trouble.String()))
}
