package installcmd

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/jobweaver/jobweaver/local/jobweaver/cli"
	"github.com/jobweaver/jobweaver/local/kept"
)

// readable: containers with different users read the files. Only the containers that need a secret mount its folder.
const readable fs.FileMode = 0o444

// secretFile is a file in the folder of secrets. Each has its own subfolder, which can be a volume.
type secretFile struct {
	name   string
	kind   kept.Kind
	pgpass bool // for PostgreSQL's clients there is a file pgpass beside it
}

// secretFiles are the secrets of docker-compose.yml.
func secretFiles() []secretFile {
	return []secretFile{
		{name: "admin/key", kind: kept.APIKey()},
		{name: "webhook/secret", kind: kept.SigningSecret()},
		{name: "callback/secret", kind: kept.SigningSecret()},
		{name: "server/password", kind: kept.Password(), pgpass: true},
		{name: "api/jobweaver_api", kind: kept.Password()},
		{name: "scheduler/jobweaver_scheduler", kind: kept.Password()},
		{name: "worker/jobweaver_worker", kind: kept.Password()},
		{name: "grafana/password", kind: kept.Password()},
	}
}

// NewSecrets makes the command secrets.
func NewSecrets() *cobra.Command {
	secrets := cli.Group("secrets", "Manage the secrets that docker compose makes at its first start")
	dir := secrets.PersistentFlags().String("dir", "/run/secrets", "their folder")
	secrets.AddCommand(
		cli.Verb("create", "Make the secrets that are missing", 0, func(cmd *cobra.Command, _ []string) error {
			for _, s := range secretFiles() {
				if err := s.create(*dir); err != nil {
					return err
				}
				fmt.Fprintf(cmd.OutOrStdout(), "%s is there\n", s.name)
			}
			return nil
		}),
		cli.Verb("show NAME", "Print a secret: admin/key is the API key of an admin", 1,
			func(cmd *cobra.Command, args []string) error { return showSecret(cmd, *dir, args[0]) }))
	return secrets
}

func showSecret(cmd *cobra.Command, dir, name string) error {
	var names []string
	for _, s := range secretFiles() {
		names = append(names, s.name)
	}
	if !slices.Contains(names, name) {
		return cli.Usage("there is no secret %q; there are %s", name, strings.Join(names, ", "))
	}
	text, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		return fmt.Errorf("read secret: %w", err)
	}
	_, err = cmd.OutOrStdout().Write(text)
	return err
}

func (s secretFile) create(dir string) error {
	path := filepath.Join(dir, s.name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return fmt.Errorf("keep secret: %w", err)
	}
	text, err := s.kind.At(path, readable)
	if err != nil || !s.pgpass {
		return err
	}
	return kept.Write(filepath.Join(filepath.Dir(path), "pgpass"), "*:*:*:*:"+text, readable)
}
