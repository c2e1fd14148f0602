package funchost

import (
	"fmt"
	"io"
)

// exitUsage is the exit code EX_USAGE of sysexits.h.
const exitUsage = 64

const usageText = `%[1]s is a function of JobWeaver. It takes its settings from the environment and serves until
SIGTERM or SIGINT.

Usage:
  %[1]s              run the function
  %[1]s healthcheck  ask the function that runs with the same environment whether it is ready: exit code 0 or 1
  %[1]s --version    print the version
  %[1]s --help       print this text

The most important settings:
  DATABASE_URL   the function's own database (required)
  KAFKA_BROKERS  the brokers, separated by commas
  HOST, PORT     where it serves HTTP: every address, 8080
  LOG_LEVEL      debug, info, warn or error
  LOG_FORMAT     json or text

docs/settings.md lists all settings of each function. jobweaver dev --only postgres,kafka prints those of all functions
for this machine.
`

// answerArguments handles command-line arguments that do not run the function, and returns the exit code.
func answerArguments(name string, args []string, out, complaints io.Writer) int {
	if len(args) == 1 {
		switch args[0] {
		case "--help", "-h", "-help", "help":
			fmt.Fprintf(out, usageText, name)
			return 0
		case "--version", "-version", "version":
			fmt.Fprintln(out, name, Version)
			return 0
		}
	}
	fmt.Fprintf(complaints,
		"%s: unknown argument %q: a function takes its settings from the environment; see %[1]s --help\n",
		name, unknown(args))
	return exitUsage
}

// unknown returns the argument to name in the error.
func unknown(args []string) string {
	if len(args) > 1 && args[0] == healthcheck {
		return args[1]
	}
	return args[0]
}
