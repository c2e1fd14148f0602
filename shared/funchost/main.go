package funchost

import (
	"context"
	"errors"
)

// Env is what Main gives to a function's wiring.
type Env struct {
	Config Config
}

// DatabaseURL is DATABASE_URL. Main has checked that there is one.
func (e *Env) DatabaseURL() string { return "" }

// Load reads the function's own settings into a struct with envconfig tags. For each string setting
// <NAME> there may be <NAME>_FILE, which names a file that holds it.
func (e *Env) Load(cfg any) error { return errors.ErrUnsupported }

// OnClose has something closed after the drain, the last added first.
func (e *Env) OnClose(closing func()) {}

// Main is a function's whole process: it reads the environment, has the function built, and runs it
// until SIGTERM or SIGINT. It exits with 0 after a clean drain, and with 1 and one line on stderr when
// it cannot start.
func Main(name string, build func(ctx context.Context, env *Env) (Function, error)) {
}
