package shortlived

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestASecretIsReadEachTime(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "token")
	for _, source := range []Source{{File: file}, {Command: "cat " + file}, {Command: `printf '%s\n' "$(cat "$AT")"`}} {
		for _, want := range []string{"one", "two words "} {
			if err := os.WriteFile(file, []byte(want+"\r\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			if got, err := source.Read(t.Context(), "AT="+file); err != nil || got != want {
				t.Errorf("%+v: %q, %v", source, got, err)
			}
		}
	}
}

func TestTheErrorOfASourceShowsItsCauseAndNoSecret(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		source Source
		want   string
	}{
		{Source{File: "/not/there"}, "/not/there"},
		{Source{File: "/dev/null"}, "it is empty"},
		{Source{Command: "true"}, "it is empty"},
		{Source{Command: "echo geheim; echo no credentials >&2; exit 3"}, "exit status 3: no credentials"},
		{Source{Command: "no-such-command-anywhere"}, "not found"},
	} {
		got, err := c.source.Read(t.Context())
		if err == nil || got != "" || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "geheim") {
			t.Errorf("%+v: %q, %v", c.source, got, err)
		}
	}
}

// The command of a shell may have processes of its own, which would hold the output open.
func TestACommandThatHangsIsEndedWithAllThatItStarted(t *testing.T) {
	t.Parallel()
	marker := filepath.Join(t.TempDir(), "marker")
	began := time.Now()
	_, err := run(t.Context(), "(sleep 600; touch "+marker+") | cat", nil, 100*time.Millisecond)
	if err == nil || !strings.Contains(err.Error(), "has not ended within 100ms") {
		t.Errorf("it ended with %v", err)
	}
	if took := time.Since(began); took > 30*time.Second {
		t.Errorf("it took %s", took)
	}
}
