// Package hooks turns signed requests of other systems (GitHub, Stripe, Slack, and any that signs as in Standard
// Webhooks or sends a secret header) into job requests, or into events for handlers that wait, configured by a file.
package hooks

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"time"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/goccy/go-yaml"

	"github.com/jobweaver/jobweaver/shared/apierror"
	"github.com/jobweaver/jobweaver/shared/jobspec"
	"github.com/jobweaver/jobweaver/shared/reload"
	"github.com/jobweaver/jobweaver/shared/strictjson"
)

// Setting names the file in errors and in the log.
const Setting = "HOOKS_FILE"

// maxReadableID is the length in bytes up to which a message id is put into an idempotency key unchanged.
const maxReadableID = 128

var validName = regexp.MustCompile(`^[a-z0-9][a-z0-9-]{0,62}$`)

// Set is the hooks of a file, by name.
type Set map[string]*Hook

// Hook is one sender of requests, and the job or event that each of its requests becomes.
type Hook struct {
	Name      string
	Owner     string // of the jobs; empty: none
	Signature string // the name of the scheme

	scheme  scheme
	secrets *reload.Files[[][]byte]
	job     node // nil: event
	event   node // nil: job
}

type fileConfig struct {
	Hooks []hookConfig `yaml:"hooks"`
}

type hookConfig struct {
	Name        string         `yaml:"name"`
	Owner       string         `yaml:"owner"`
	Signature   string         `yaml:"signature"`
	Header      string         `yaml:"header"`
	SecretFiles []string       `yaml:"secretFiles"`
	Job         map[string]any `yaml:"job"`
	Event       map[string]any `yaml:"event"`
}

// Open reads the file of hooks and the files of their secrets, and reads them again whenever one of them changes. It
// returns nil for an empty path.
func Open(path string) (*reload.Files[Set], error) {
	if path == "" {
		return nil, nil
	}
	return reload.New(Setting, func(texts [][]byte) (Set, error) { return parse(texts[0]) }, path)
}

func parse(text []byte) (Set, error) {
	var file fileConfig
	text = bytes.TrimPrefix(text, []byte("\ufeff")) // as some editors of Windows write it
	if err := yaml.NewDecoder(bytes.NewReader(text), yaml.Strict()).Decode(&file); err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("read hooks: %w", err)
	}
	set := Set{}
	for i, config := range file.Hooks {
		hook, err := config.compile()
		if err == nil && set[hook.Name] != nil {
			err = errors.New("another hook has this name")
		}
		if err != nil {
			return nil, fmt.Errorf("hook %d (%s): %w", i+1, config.Name, err)
		}
		set[hook.Name] = hook
	}
	return set, nil
}

func (c *hookConfig) compile() (*Hook, error) {
	if !validName.MatchString(c.Name) {
		return nil, errors.New("name must be 1 to 63 of a-z, 0-9 and -, and not begin with -")
	}
	if len(c.SecretFiles) == 0 {
		return nil, errors.New("secretFiles is empty: a hook without a secret would take jobs from anyone")
	}
	scheme, err := schemeOf(c.Signature, c.Header)
	if err != nil {
		return nil, err
	}
	secrets, err := reload.New(Setting+": secretFiles of "+c.Name, trimmed, c.SecretFiles...)
	if err != nil {
		return nil, err
	}
	hook := &Hook{Name: c.Name, Owner: c.Owner, Signature: c.Signature, scheme: scheme, secrets: secrets}
	switch {
	case (c.Job == nil) == (c.Event == nil):
		return nil, errors.New("has either a job or an event")
	case c.Event != nil:
		hook.event, err = compileEvent(c.Event)
		return hook, err
	case c.Job["jobType"] == nil:
		return nil, errors.New("job has no jobType")
	}
	if hook.job, err = compile(c.Job); err != nil {
		return nil, fmt.Errorf("job: %w", err)
	}
	return hook, nil
}

// trimmed returns the secrets without the line ends that editors add.
func trimmed(texts [][]byte) ([][]byte, error) {
	secrets := make([][]byte, len(texts))
	for i, text := range texts {
		secrets[i] = bytes.TrimSpace(text)
		if len(secrets[i]) < 16 {
			return nil, fmt.Errorf("secret %d has fewer than 16 bytes", i+1)
		}
	}
	return secrets, nil
}

// Verify checks that one of the hook's secrets has signed a request; nothing is signed for a hook that is nil. It
// returns an id of the message: a repeated request has the same id. The error states what is wrong without revealing
// anything about the secret.
func (h *Hook) Verify(header http.Header, body []byte, now time.Time) (id string, err error) {
	if h == nil {
		return "", errors.New("there is no such hook")
	}
	return h.scheme(h.secrets.Get(), header, body, now)
}

// Request makes the JSON of a JobRequest. If the configuration has no idempotencyKey, the hook's name and the message's
// id make one, so that a message becomes one job however often it is sent. With null, each request becomes a job.
func (h *Hook) Request(header http.Header, body []byte, id string) (json.RawMessage, error) {
	in, err := read(header, body)
	if err != nil {
		return nil, err
	}
	made, err := h.job.value(in)
	if err != nil {
		return nil, err
	}
	job, _ := made.(map[string]any)
	if _, ok := job["payload"]; !ok {
		job["payload"] = json.RawMessage(body)
	}
	switch key, ok := job["idempotencyKey"]; {
	case !ok:
		job["idempotencyKey"] = h.Name + ":" + readable(id)
	case key == nil:
		delete(job, "idempotencyKey")
	}
	var request boundedText
	if err := jsonv2.MarshalWrite(&request, job, strictjson.AsEncodingJSON, jsontext.EscapeForHTML(false)); err != nil {
		return nil, fmt.Errorf("write job request: %w", err)
	}
	return json.RawMessage(request), nil
}

// readable returns the id of a message, or that of its content if it is long.
func readable(id string) string {
	if len(id) > maxReadableID {
		return contentID([]byte(id))
	}
	return id
}

// read reads a body as strictly as a job is read: the time and the memory that a path takes grow with its depth.
func read(header http.Header, body []byte) (*input, error) {
	if p := strictjson.Scan(body, ""); p != nil {
		return nil, p.Err("body")
	}
	in := input{header: header}
	decoder := json.NewDecoder(bytes.NewReader(body))
	decoder.UseNumber() // large numbers would lose digits
	if !jsontext.Value(body).IsValid() || decoder.Decode(&in.body) != nil {
		return nil, errors.New("the body is not one JSON value in UTF-8 whose objects have each name once")
	}
	return &in, nil
}

// boundedText is a job request that is being written. Paths that match many parts could make a far longer one.
type boundedText []byte

func (t *boundedText) Write(part []byte) (int, error) {
	if len(*t)+len(part) > jobspec.MaxJobBytes {
		return 0, apierror.New(apierror.PayloadTooLarge, "the job has more than %d bytes", jobspec.MaxJobBytes)
	}
	*t = append(*t, part...)
	return len(part), nil
}

// Greeting returns the answer to a request that only tests the connection; nil: the request is an event.
func (h *Hook) Greeting(header http.Header, body []byte) (contentType string, answer []byte) {
	switch h.Signature {
	case schemeGitHub:
		if header.Get("X-GitHub-Event") == "ping" {
			return "text/plain", []byte("pong")
		}
	case schemeSlack:
		var asked struct{ Type, Challenge string }
		if json.Unmarshal(body, &asked) == nil && asked.Type == "url_verification" {
			return "text/plain", []byte(asked.Challenge)
		}
	}
	return "", nil
}

// contentID identifies a message by its content, if its sender signs no id.
func contentID(content []byte) string {
	hash := sha256.Sum256(content)
	return "sha256-" + hex.EncodeToString(hash[:])
}
