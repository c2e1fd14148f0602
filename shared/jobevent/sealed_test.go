package jobevent_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/jobweaver/jobweaver/shared/jobevent"
)

func TestAMessageIsCutAndASealedOneIsNot(t *testing.T) {
	t.Parallel()
	longest := jobevent.SealedPrefix + strings.Repeat("A", jobevent.SealedSize(jobevent.MaxMessage)-len(jobevent.SealedPrefix))
	for text, want := range map[string]string{
		"a\x00b\x1b[31m\n": "ab[31m\n",
		longest:            longest,
		longest + "A":      longest[:len(longest)-len("…")] + "…",
	} {
		if got := jobevent.CleanMessage(text); got != want {
			t.Errorf("%.20q of %d bytes became %.20q of %d", text, len(text), got, len(got))
		}
	}
	long := jobevent.CleanMessage(strings.Repeat("é\xff", jobevent.MaxMessage))
	if len(long) > jobevent.MaxMessage || !utf8.ValidString(long) || !strings.HasSuffix(long, "…") {
		t.Errorf("it has %d bytes and ends in %q", len(long), long[len(long)-5:])
	}
}
