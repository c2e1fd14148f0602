package pgpool

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/jobweaver/jobweaver/shared/secret"
	"github.com/jobweaver/jobweaver/shared/shortlived"
)

// Settings complete DATABASE_URL.
type Settings struct {
	Direct          secret.Text `envconfig:"DATABASE_DIRECT_URL" infile:"file:" desc:"the server itself, if DATABASE_URL leads to a connection pooler"`
	PasswordFile    string      `envconfig:"DATABASE_PASSWORD_FILE" desc:"a file with the password of DATABASE_URL, in place of one in the address; read at each connection"`
	PasswordCommand string      `envconfig:"DATABASE_PASSWORD_COMMAND" desc:"a shell command that prints it, at each connection, within 10 s; it has PGHOST, PGPORT, PGUSER and PGDATABASE"`
}

// The parameters of an address by which its password is read at each connection.
const (
	passwordFile    = "passwordfile"
	passwordCommand = "passwordcommand"
)

// errNoPassword is about a password that cannot be read at this moment.
var errNoPassword = errors.New("read the password of the database")

// Complete returns the address with its server behind a pooler, and with the source of its password.
func (s Settings) Complete(address string) (_ string, err error) {
	if s.PasswordFile != "" && s.PasswordCommand != "" {
		return "", errors.New("DATABASE_PASSWORD_FILE: is set, and so is DATABASE_PASSWORD_COMMAND")
	}
	if address == "" {
		return "", nil
	}
	if s.Direct.IsSet() {
		address = Behind(address, s.Direct.Reveal())
	}
	for parameter, value := range map[string]string{passwordFile: s.PasswordFile, passwordCommand: s.PasswordCommand} {
		if value == "" {
			continue
		}
		if address, err = With(address, parameter, value); err != nil {
			return "", fmt.Errorf("DATABASE_URL: %w", err)
		}
	}
	return address, nil
}

// takeSource removes the parameters of the password, which a server would refuse.
func takeSource(parameters map[string]string) shortlived.Source {
	source := shortlived.Source{File: parameters[passwordFile], Command: parameters[passwordCommand]}
	delete(parameters, passwordFile)
	delete(parameters, passwordCommand)
	return source
}

// answer is the last answer about the password. It serves all connections that began before it was asked for: many
// begin at once after an outage, and must not wait for as many commands.
type answer struct {
	mu       sync.Mutex
	began    time.Time
	password string
	err      error
}

// fill sets the password that is valid now.
func (a *answer) fill(ctx context.Context, source shortlived.Source, cfg *pgx.ConnConfig) error {
	if !source.IsSet() {
		return nil
	}
	asked := time.Now()
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.began.After(asked) {
		a.began = time.Now()
		a.password, a.err = source.Read(ctx, "PGHOST="+cfg.Host, "PGPORT="+strconv.Itoa(int(cfg.Port)),
			"PGUSER="+cfg.User, "PGDATABASE="+cfg.Database)
	}
	if a.err != nil {
		name := "DATABASE_PASSWORD_FILE"
		if source.Command != "" {
			name = "DATABASE_PASSWORD_COMMAND"
		}
		return fmt.Errorf("%w: %s: %w", errNoPassword, name, a.err)
	}
	cfg.Password = a.password
	return nil
}
