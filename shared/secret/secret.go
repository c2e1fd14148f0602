// Package secret holds secret settings. However one is printed, logged or marshaled, [secret] appears in its place;
// only Reveal returns it.
package secret

import (
	"fmt"
	"io"
	"log/slog"
)

const hidden = "[secret]"

// Text is one secret; the zero value is none. It points to the text, because fmt calls no methods of a Text in an
// unexported field and prints its content: then it prints an address.
type Text struct{ text *string }

// Of makes a secret of a text.
func Of(text string) Text {
	if text == "" {
		return Text{}
	}
	return Text{&text}
}

// IsSet reports whether there is a secret.
func (t Text) IsSet() bool { return t.text != nil }

// Reveal returns the secret itself.
func (t Text) Reveal() string {
	if t.text == nil {
		return ""
	}
	return *t.text
}

// Set is envconfig.Setter's: it reads the secret from the environment.
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

// Reveal returns the secrets themselves.
func (t Texts) Reveal() []string {
	texts := make([]string, len(t))
	for i, one := range t {
		texts[i] = one.Reveal()
	}
	return texts
}
