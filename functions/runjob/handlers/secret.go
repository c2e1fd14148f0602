package handlers

import "log/slog"

// Secret is a setting that no log, error or dump shows.
type Secret string

const redacted = "[secret]"

func (s Secret) String() string {
	if s == "" {
		return ""
	}
	return redacted
}

// GoString is for %#v.
func (s Secret) GoString() string { return s.String() }

// LogValue is for slog.
func (s Secret) LogValue() slog.Value { return slog.StringValue(s.String()) }

// MarshalText is for JSON, and whatever else writes text.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }
