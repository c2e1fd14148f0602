package apikey_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"regexp"
	"strings"
	"testing"

	"github.com/jobweaver/jobweaver/shared/apikey"
)

var form = regexp.MustCompile(`^jw_[a-z2-7]{12}_[0-9A-Za-z]{49}$`)

func TestAKeyIsReadAsItWasMade(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for range 1000 {
		key := apikey.New()
		text := key.Reveal()
		if !form.MatchString(text) || seen[text] || seen[key.ID()] {
			t.Fatalf("made %s", text)
		}
		seen[text], seen[key.ID()] = true, true
		read, ok := apikey.Parse(text)
		hash := key.Hash()
		if !ok || read != key || !apikey.CheckID(read.ID()) || !read.Matches(hash[:]) || apikey.New().Matches(hash[:]) || read.Matches(nil) {
			t.Fatalf("%s is read as %s, %v", text, read.Reveal(), ok)
		}
	}
}

// A key that was made elsewhere, or by an older version, is a key for ever.
func TestTheFormOfAKeyStays(t *testing.T) {
	t.Parallel()
	const text = "jw_abcdefghij27_0000000000000000000000000000000000000000001"
	key, ok := apikey.Parse(text + "1Ju3DB")
	if !ok || key.ID() != "abcdefghij27" {
		t.Errorf("%s is none", text)
	}
	if hash := fmt.Sprintf("%x", key.Hash()); hash != "7c5d4fcd82a4fd26d54500e5ffec5c7cdcf17b4322056ea67d5f3c928a726124" {
		t.Errorf("its hash is %s", hash)
	}
}

func TestWhatIsNoKeyIsKnownByItsForm(t *testing.T) {
	t.Parallel()
	good := apikey.New().Reveal()
	for name, text := range map[string]string{
		"nothing": "", "a word": "secret", "a prefix": good[:40], "a key with more": good + "0", "spaces round it": " " + good[:63] + " ",
		"big letters":       strings.ToUpper(good),
		"another prefix":    "wj" + good[2:],
		"a digit that is 1": good[:3] + "1" + good[4:],
		"another secret":    good[:20] + string(rune(good[20]^1)) + good[21:],
		"no digits":         good[:20] + "é" + good[22:],
		"no check":          good[:59] + "000000",
		"other underscores": strings.ReplaceAll(good, "_", "-"),
	} {
		if key, ok := apikey.Parse(text); ok || key != (apikey.Key{}) {
			t.Errorf("%s is taken for a key", name)
		}
	}
	for _, id := range []string{"", "abc", "abcdefghijk1", "ABCDEFGHIJKL", "abcdefghijklm"} {
		if apikey.CheckID(id) {
			t.Errorf("%q is taken for an id", id)
		}
	}
}

func TestAKeyDoesNotShowItsSecretHoweverItIsPrinted(t *testing.T) {
	t.Parallel()
	key := apikey.New()
	holder := struct {
		Key  apikey.Key
		Keys []apikey.Key
		At   *apikey.Key
	}{key, []apikey.Key{key}, &key}
	var printed bytes.Buffer
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q"} {
		fmt.Fprintf(&printed, verb+verb+"\n", key, holder)
	}
	for _, handler := range []slog.Handler{slog.NewJSONHandler(&printed, nil), slog.NewTextHandler(&printed, nil)} {
		slog.New(handler).Info("x", "key", key, "holder", holder)
	}
	text, err := json.Marshal(holder)
	if err != nil {
		t.Fatal(err)
	}
	printed.Write(text)
	secret := key.Reveal()[16:]
	if strings.Contains(printed.String(), secret) || strings.Contains(printed.String(), secret[:20]) {
		t.Errorf("printed\n%s", printed.String())
	}
	if !strings.Contains(printed.String(), key.ID()) {
		t.Error("the id is not shown")
	}
}

// Only a text with its own check is a key, and no text causes a panic.
func FuzzParse(f *testing.F) {
	good := apikey.New().Reveal()
	for _, text := range []string{good, good[1:], strings.ToUpper(good), "", "jw_", "jw_abcdefghij27_" + strings.Repeat("0", 49)} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		key, ok := apikey.Parse(text)
		switch {
		case !ok && key != (apikey.Key{}):
			t.Error("refused and given")
		case ok && (key.Reveal() != text || !form.MatchString(text) || !apikey.CheckID(key.ID())):
			t.Errorf("%q is taken for a key", text)
		}
		if !ok {
			return
		}
		for i := range text { // one wrong character is always noticed
			other := text[:i] + string(base62[(strings.IndexByte(base62, text[i])+1)%62]) + text[i+1:]
			if _, ok := apikey.Parse(other); ok {
				t.Errorf("%q passes for %q", other, text)
			}
		}
	})
}

const base62 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
