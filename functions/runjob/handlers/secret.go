package handlers

import (
	"fmt"
	"io"
	"log/slog"
)

// Secret is a setting that is not shown, however it is printed.
type Secret string

const hidden = "[secret]"

func (Secret) String() string { return hidden }

// Format hides it, whatever the verb.
func (Secret) Format(s fmt.State, _ rune) { _, _ = io.WriteString(s, hidden) }

// LogValue hides it.
func (Secret) LogValue() slog.Value { return slog.StringValue(hidden) }

// MarshalText hides it in JSON, and in whatever else writes text.
func (Secret) MarshalText() ([]byte, error) { return []byte(hidden), nil }
