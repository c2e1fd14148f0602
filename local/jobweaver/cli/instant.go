package cli

import (
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
)

// instant is the value of a flag: an RFC 3339 instant, or an age.
type instant string

func (i *instant) String() string { return string(*i) }

func (i *instant) Type() string { return "instant" }

func (i *instant) Set(text string) error {
	if _, err := time.Parse(time.RFC3339, text); err == nil {
		*i = instant(text)
		return nil
	}
	age, ok := ageOf(text)
	if !ok {
		return errors.New("must be an instant in RFC 3339, such as 2026-11-22T08:00:00Z, or an age, such as 90m or 3d")
	}
	*i = instant(time.Now().Add(-age).UTC().Format(time.RFC3339))
	return nil
}

// ageOf parses a duration, which may be in days.
func ageOf(text string) (time.Duration, bool) {
	if days, ok := strings.CutSuffix(text, "d"); ok {
		n, err := strconv.ParseUint(days, 10, 16)
		return time.Duration(n) * 24 * time.Hour, err == nil //nolint:gosec // 16 bits
	}
	age, err := time.ParseDuration(text)
	return age, err == nil && age >= 0
}

// QueryFlag registers a flag whose value is passed on as a query parameter.
func QueryFlag(cmd *cobra.Command, name, usage string) *string {
	value := new(string)
	if strings.HasSuffix(name, "since") || strings.HasSuffix(name, "until") {
		cmd.Flags().Var((*instant)(value), name, usage)
	} else {
		cmd.Flags().StringVar(value, name, "", usage)
	}
	return value
}
