// Package secret holds settings that nobody is shown. However one is printed, logged or marshalled, [secret] stands
// in its place; only Reveal gives it.
package secret

import (
	"fmt"
	"io"
	"log/slog"
)

const hidden = "[secret]"

// Text is one secret; the zero value is none. The text stands behind a pointer, as fmt asks no methods of the
// unexported fields that a Text may be in, and prints what it finds: there it finds an address.
type Text struct{ text *string }

// Of makes a secret of a text.
func Of(text string) Text {
	if text == "" {
		return Text{}
	}
	return Text{&text}
}

// IsSet says whether there is a secret at all.
func (t Text) IsSet() bool { return t.text != nil }

// Reveal is the secret itself, for where it is used.
func (t Text) Reveal() string {
	if t.text == nil {
		return ""
	}
	return *t.text
}

// Set takes the secret from the environment: it is envconfig.Setter's.
func (t *Text) Set(text string) error {
	*t = Of(text)
	return nil
}

// String hides it.
func (Text) String() string { return hidden }

// GoString hides it.
func (Text) GoString() string { return hidden }

// Format hides it, whatever the verb.
func (Text) Format(s fmt.State, _ rune) { _, _ = io.WriteString(s, hidden) }

// LogValue hides it.
func (Text) LogValue() slog.Value { return slog.StringValue(hidden) }

// MarshalText hides it.
func (Text) MarshalText() ([]byte, error) { return []byte(hidden), nil }

// MarshalJSON hides it.
func (Text) MarshalJSON() ([]byte, error) { return []byte(`"` + hidden + `"`), nil }

// Texts are secrets of one setting.
type Texts []Text

// AllOf makes secrets of texts.
func AllOf(texts ...string) Texts {
	all := make(Texts, len(texts))
	for i, text := range texts {
		all[i] = Of(text)
	}
	return all
}

// Reveal is the secrets themselves.
func (t Texts) Reveal() []string {
	texts := make([]string, len(t))
	for i, one := range t {
		texts[i] = one.Reveal()
	}
	return texts
}
