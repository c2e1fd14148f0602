package hooks

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
)

const (
	plainSecret    = "a secret of thirty characters!"
	standardSecret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
)

// open writes a file of hooks, in which SECRET is replaced by the path of a secret, and reads it.
func open(t *testing.T, secret, text string) (Set, error) {
	t.Helper()
	dir := t.TempDir()
	at := filepath.Join(dir, "secret")
	write(t, at, secret+"\n")
	write(t, filepath.Join(dir, "hooks.yaml"), strings.ReplaceAll(text, "SECRET", at))
	files, err := Open(filepath.Join(dir, "hooks.yaml"))
	if err != nil {
		return nil, err
	}
	return files.Get(), nil
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func newHook(t *testing.T, secret, rest string) *Hook {
	t.Helper()
	set, err := open(t, secret, "hooks:\n- name: h\n  owner: shop\n  secretFiles: [SECRET]\n"+rest)
	if err != nil {
		t.Fatal(err)
	}
	return set["h"]
}

func mac(parts ...string) string {
	m := hmac.New(sha256.New, []byte(plainSecret))
	for _, part := range parts {
		m.Write([]byte(part))
	}
	return hex.EncodeToString(m.Sum(nil))
}

func headers(pairs ...string) http.Header {
	h := http.Header{}
	for i := 0; i < len(pairs); i += 2 {
		h.Add(pairs[i], pairs[i+1])
	}
	return h
}

func TestEachSchemeAcceptsOnlyItsSendersSignature(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_800_000_000, 0)
	at, late := "1800000000", "1799999699" // 301 s before
	const body = `{"id":"evt_1","n":1}`
	signer, err := standardwebhooks.NewWebhook(standardSecret)
	if err != nil {
		t.Fatal(err)
	}
	standardly := func(id string, at time.Time) http.Header {
		text, err := signer.Sign(id, at, []byte(body))
		if err != nil {
			t.Fatal(err)
		}
		return headers("webhook-id", id, "webhook-timestamp", strconv.FormatInt(at.Unix(), 10), "webhook-signature", text)
	}
	for name, c := range map[string]struct {
		scheme, secret string
		right          http.Header
		id             string
		wrong          map[string]http.Header
	}{
		"standard-webhooks": {"signature: standard-webhooks", standardSecret, standardly("msg_1", now), "msg_1", map[string]http.Header{
			"stale": standardly("msg_1", now.Add(-301*time.Second)), "from the future": standardly("msg_1", now.Add(301*time.Second)),
			"nothing": {},
		}},
		"github": {"signature: github", plainSecret, headers("X-Hub-Signature-256", "sha256="+mac(body)), contentID([]byte(body)), map[string]http.Header{
			"the old header": headers("X-Hub-Signature", "sha1="+mac(body)), "nothing": {},
			"two": headers("X-Hub-Signature-256", "sha256="+mac(body), "X-Hub-Signature-256", "sha256="+mac("x")),
		}},
		"stripe": {"signature: stripe", plainSecret, headers("Stripe-Signature", "t="+at+",v1=00,v1="+mac(at, ".", body)+",v0=x"), "evt_1", map[string]http.Header{
			"stale":         headers("Stripe-Signature", "t="+late+",v1="+mac(late, ".", body)),
			"another time":  headers("Stripe-Signature", "t="+at+",v1="+mac(late, ".", body)),
			"an old scheme": headers("Stripe-Signature", "t="+at+",v0="+mac(at, ".", body)),
			"no time":       headers("Stripe-Signature", "v1="+mac(".", body)),
		}},
		"slack": {"signature: slack", plainSecret, headers("X-Slack-Signature", "v0="+mac("v0:", at, ":", body), "X-Slack-Request-Timestamp", at), contentID([]byte(body)), map[string]http.Header{
			"stale":   headers("X-Slack-Signature", "v0="+mac("v0:", late, ":", body), "X-Slack-Request-Timestamp", late),
			"no time": headers("X-Slack-Signature", "v0="+mac("v0:", at, ":", body)),
		}},
		"header": {"signature: header\n  header: X-Token", plainSecret, headers("X-Token", plainSecret), contentID([]byte(body)), map[string]http.Header{
			"a part": headers("X-Token", plainSecret[1:]), "empty": headers("X-Token", ""), "another header": headers("X-Tokens", plainSecret),
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			hook := newHook(t, c.secret, "  "+c.scheme+"\n  job: {jobType: T}\n")
			if id, err := hook.Verify(c.right, []byte(body), now); err != nil || id != c.id {
				t.Errorf("the right one: id %q, %v", id, err)
			}
			if name != "header" {
				if _, err := hook.Verify(c.right, []byte(body+" "), now); err == nil {
					t.Error("another body was taken")
				}
			}
			for what, h := range c.wrong {
				if id, err := hook.Verify(h, []byte(body), now); err == nil {
					t.Errorf("%s was taken, as %q", what, id)
				}
			}
			other := "another secret of thirty chars!"
			if name == "standard-webhooks" {
				other = "whsec_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"
			}
			if _, err := newHook(t, other, "  "+c.scheme+"\n  job: {jobType: T}\n").Verify(c.right, []byte(body), now); err == nil {
				t.Error("another hook took it")
			}
		})
	}
}

func TestARequestBecomesAJob(t *testing.T) {
	t.Parallel()
	const body = `{"repository": {"full_name": "a/<b>"}, "commits": [{"id": "1"}, {"id": "2"}], "big": 12345678901234567890}`
	for name, c := range map[string]struct{ job, want string }{
		"the whole body": {`{jobType: T}`,
			`{"idempotencyKey":"h:m1","jobType":"T","payload":` + strings.ReplaceAll(strings.ReplaceAll(body, ": ", ":"), ", ", ",") + `}`},
		"by paths": {
			`{jobType: {$header: X-Kind}, orderingKey: {$path: $.repository.full_name}, idempotencyKey: {$path: "$.commits[0].id"}, priority: 5,
       payload: {repo: {$path: $.repository}, ids: {$path: "$.commits[*].id"}, n: {$path: $.big}, what: [const, {$path: $.none, default: null}]}}`,
			`{"idempotencyKey":"1","jobType":"PUSH","orderingKey":"a/<b>","payload":` +
				`{"ids":["1","2"],"n":12345678901234567890,"repo":{"full_name":"a/<b>"},"what":["const",null]},"priority":5}`,
		},
	} {
		hook := newHook(t, plainSecret, "  signature: github\n  job: "+c.job+"\n")
		made, err := hook.Request(headers("X-Kind", "PUSH"), []byte(body), "m1")
		if err != nil || string(made) != c.want {
			t.Errorf("%s: %v, made\n%s, not\n%s", name, err, made, c.want)
		}
	}
	hook := newHook(t, plainSecret, "  signature: github\n  job: {jobType: {$path: $.kind}, tags: [{$header: X-Tag}]}\n")
	for body, want := range map[string]string{
		`{}`: "the body has nothing at $.kind", `{"kind":"A"}`: "the request has no header X-Tag", `{`: "not one JSON value", `{} {}`: "not one JSON value", ``: "not one JSON value",
	} {
		if made, err := hook.Request(http.Header{}, []byte(body), "m1"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s became %s, %v", body, made, err)
		}
	}
}

// A path takes time and memory that grow with the depth of the body, for each of its ..
func TestAHostileBodyTakesNeitherTimeNorMemory(t *testing.T) {
	t.Parallel()
	deep := func(n int) string { return strings.Repeat(`{"a":`, n) + "1" + strings.Repeat("}", n) }
	hook := newHook(t, plainSecret, "  signature: github\n  job: {jobType: T, payload: {$path: $..a}}\n")
	for what, c := range map[string]struct{ body, want string }{
		"a deep body":          {deep(2_000), "nested more than 100 levels deep"},
		"a name twice":         {`{"a": 1, "a": 2}`, "not one JSON value in UTF-8 whose objects have each name once"},
		"many nested matches":  {"[" + strings.Repeat(deep(98)+",", 800) + "1]", "the job has more than 524288 bytes"},
		"a value that is none": {`{"a": 1e999}`, "must be a number that a double can hold"},
	} {
		if made, err := hook.Request(http.Header{}, []byte(c.body), "m1"); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s became %d bytes, %v", what, len(made), err)
		}
	}
	for _, path := range []string{"$..a..b", "$..a[?(@..b == 1)]"} {
		_, err := open(t, plainSecret, "hooks:\n- name: h\n  secretFiles: [SECRET]\n  signature: github\n  job: {jobType: T, payload: {$path: '"+path+"'}}\n")
		if err == nil || !strings.Contains(err.Error(), "may have .. only once") {
			t.Errorf("%s: %v", path, err)
		}
	}
}

func TestLongIDFitsAnIdempotencyKey(t *testing.T) {
	t.Parallel()
	hook := newHook(t, plainSecret, "  signature: github\n  job: {jobType: T, payload: {}}\n")
	long, err := hook.Request(nil, []byte(`{}`), strings.Repeat("x", 255))
	if err != nil || len(long) > 160 {
		t.Errorf("%s, %v", long, err)
	}
}

func TestRequestThatTestsTheConnectionIsNotAnEvent(t *testing.T) {
	t.Parallel()
	git, slack := newHook(t, plainSecret, "  signature: github\n  job: {jobType: T}\n"), newHook(t, plainSecret, "  signature: slack\n  job: {jobType: T}\n")
	if _, answer := git.Greeting(headers("X-GitHub-Event", "ping"), []byte(`{"zen":"…"}`)); string(answer) != "pong" {
		t.Errorf("ping: %q", answer)
	}
	challenge := []byte(`{"type":"url_verification","challenge":"c1"}`)
	if _, answer := slack.Greeting(nil, challenge); string(answer) != "c1" {
		t.Errorf("challenge: %q", answer)
	}
	if _, answer := git.Greeting(headers("X-GitHub-Event", "push"), challenge); answer != nil {
		t.Errorf("an event is greeted with %q", answer)
	}
}

func TestInvalidFileIsRefusedWithThePlace(t *testing.T) {
	t.Parallel()
	const good = "hooks:\n- {name: a, secretFiles: [SECRET], signature: github, job: {jobType: T}}\n"
	for text, want := range map[string]string{
		strings.Replace(good, "name: a", "name: A", 1):                              "name must be",
		strings.Replace(good, "[SECRET]", "[]", 1):                                  "secretFiles is empty",
		strings.Replace(good, "[SECRET]", "[/nowhere]", 1):                          "secretFiles of a",
		strings.Replace(good, "github", "gitlab", 1):                                `signature "gitlab" is none of`,
		strings.Replace(good, "signature: github", "signature: header", 1):          "header is for",
		strings.Replace(good, "jobType: T", "queue: q", 1):                          "job has no jobType",
		strings.Replace(good, "jobType: T", "jobType: {$path: '$['}", 1):            "JSONPath",
		strings.Replace(good, "jobType: T", "jobType: {$path: $.a, or: b}", 1):      "a reference is",
		strings.Replace(good, "jobType: T", "jobType: {$path: $.a, $header: b}", 1): "a reference is",
		strings.Replace(good, "signature:", "signatures:", 1):                       "read hooks",
		good + strings.TrimPrefix(good, "hooks:\n"):                                 "another hook has this name",
	} {
		if set, err := open(t, plainSecret, text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, %v", text, set, err)
		}
	}
	if _, err := open(t, "too short", good); err == nil || strings.Contains(err.Error(), "too short") {
		t.Errorf("a short secret: %v", err)
	}
	for _, text := range []string{"", "hooks: []", good} {
		if _, err := open(t, plainSecret, text); err != nil {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func FuzzVerify(f *testing.F) {
	f.Add("sha256="+mac("{}"), "{}")
	f.Add("t=1800000000,v1="+mac("1800000000.{}"), "{}")
	f.Fuzz(func(t *testing.T, signature, body string) {
		now := time.Unix(1_800_000_000, 0)
		h := headers("X-Hub-Signature-256", signature, "Stripe-Signature", signature, "X-Slack-Signature", signature,
			"X-Slack-Request-Timestamp", "1800000000")
		secrets := [][]byte{[]byte(plainSecret)}
		if _, err := github(secrets, h, []byte(body), now); err == nil && !strings.EqualFold(strings.TrimPrefix(signature, "sha256="), mac(body)) {
			t.Errorf("github: %q signs %q", signature, body)
		}
		if _, err := stripe(secrets, h, []byte(body), now); err == nil && !strings.Contains(strings.ToLower(signature), mac(stripeTime(signature), ".", body)) {
			t.Errorf("stripe: %q signs %q", signature, body)
		}
	})
}

// stripeTime returns the last t of a signature.
func stripeTime(signature string) (at string) {
	for part := range strings.SplitSeq(signature, ",") {
		if value, ok := strings.CutPrefix(strings.TrimSpace(part), "t="); ok {
			at = value
		}
	}
	return at
}
