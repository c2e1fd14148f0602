package schedulerdb

import (
	"fmt"
	"strings"

	"github.com/jobweaver/jobweaver/shared/jobevent"
)

// subject is what a control is about.
type subject struct {
	kind jobevent.ControlKind
	name string
}

// MarshalText writes it as a key of the ledger: type:EMAIL.
func (s subject) MarshalText() ([]byte, error) { return []byte(string(s.kind) + ":" + s.name), nil }

// UnmarshalText reads what MarshalText wrote.
func (s *subject) UnmarshalText(text []byte) error {
	kind, name, ok := strings.Cut(string(text), ":")
	if !ok {
		return fmt.Errorf("read %q as what a control is about", text)
	}
	s.kind, s.name = jobevent.ControlKind(kind), name
	return nil
}
