package secret_test

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/jobweaver/jobweaver/shared/secret"
)

const canary = "aaaaaaaa"

type config struct {
	Name     string
	Password secret.Text
	All      secret.Texts
	own      secret.Text
	more     secret.Texts
	deep     *config
}

func TestASecretIsNeverPrinted(t *testing.T) {
	t.Parallel()
	one, all := secret.Of(canary), secret.AllOf(canary, canary)
	deep := &config{"n", one, all, one, all, nil}
	whole := config{"n", one, all, one, all, deep}
	values := []any{
		one, &one, all, &all, whole, deep, []any{one, all, deep}, map[string]secret.Text{"k": one}, map[secret.Text]int{one: 1},
		struct{ c config }{whole}, struct{ c *config }{deep}, struct{ any }{one},
	}
	var out bytes.Buffer
	for _, value := range values {
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d", "%o", "%t", "%T", "%p", "%w"} {
			_, _ = fmt.Fprintf(&out, verb+" ", value)
		}
		slog.New(slog.NewJSONHandler(&out, nil)).Info("printed", "value", value)
		slog.New(slog.NewTextHandler(&out, nil)).Info("printed", "value", value)
		_ = json.NewEncoder(&out).Encode(value)
		_ = xml.NewEncoder(&out).Encode(value)
		_, _ = fmt.Fprintln(&out, fmt.Errorf("a setting: %v", value), fmt.Sprint(value))
	}
	printed := strings.ToLower(out.String())
	for _, shape := range []string{canary, "61616161", "97 97", "0x61", "141 141"} {
		if strings.Contains(printed, shape) {
			t.Errorf("%q is shown in %s", shape, printed)
		}
	}
	if n := strings.Count(printed, "[secret]"); n < 200 {
		t.Errorf("hidden %d times: %s", n, printed)
	}
}

func TestRevealReturnsTheSecret(t *testing.T) {
	t.Parallel()
	one := secret.Of(canary)
	if one.Reveal() != canary || !one.IsSet() {
		t.Errorf("revealed as %q", one.Reveal())
	}
	if none := secret.Of(""); none.IsSet() || none.Reveal() != "" || none != (secret.Text{}) {
		t.Errorf("none is %q", none.Reveal())
	}
	if got := secret.AllOf("a", "b").Reveal(); len(got) != 2 || got[0] != "a" || got[1] != "b" {
		t.Errorf("revealed as %q", got)
	}
	if got := secret.Texts(nil).Reveal(); len(got) != 0 {
		t.Errorf("none are %q", got)
	}
}
