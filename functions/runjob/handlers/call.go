package handlers

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/jobweaver/jobweaver/shared/apierror"
	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/outbound"
	"github.com/jobweaver/jobweaver/shared/publicurl"
	"github.com/jobweaver/jobweaver/shared/secret"
	"github.com/jobweaver/jobweaver/shared/webhook"
)

// CallsConfig has the settings of what EXTERNAL and FUNCTION send to the services that they call.
type CallsConfig struct {
	Public publicurl.Config `ignored:"true"`

	CallbackURL string `envconfig:"CALLBACK_URL" desc:"public URL of POST /api/jobs/callback, to which outside systems call back"`
}

// Caller makes the calls of EXTERNAL and FUNCTION.
type Caller struct {
	client      *outbound.Client
	signer      *webhook.Outgoing
	keys        *webhook.CallbackKeys
	callbackURL string
}

// NewCaller returns a Caller with an operator's settings.
func NewCaller(
	client *outbound.Client, sign webhook.Config, back webhook.CallbackConfig, calls CallsConfig,
) (*Caller, error) {
	callback, err := calls.Public.Callback(calls.CallbackURL)
	if err != nil {
		return nil, err
	}
	c := &Caller{client: client, callbackURL: callback}
	if u, err := url.Parse(c.callbackURL); c.callbackURL != "" &&
		(err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil || u.Fragment != "") {
		return nil, fmt.Errorf("CALLBACK_URL: %q is not an http or https URL", c.callbackURL)
	}
	if c.signer, err = webhook.NewOutgoing(sign, webhook.Call); err != nil {
		return nil, err
	}
	if c.keys, err = webhook.NewCallbackKeys(back.Secrets.Reveal()); err != nil {
		return nil, err
	}
	return c, apart(sign.Secrets, back.Secrets)
}

// apart returns an error if a secret both signs requests and authenticates callbacks. A client chooses the whole
// request of a FUNCTION, which is signed: with a shared secret it could be sent back as the callback of any job.
func apart(sign, back secret.Texts) error {
	trimmed := func(secrets secret.Texts) []string {
		texts := secrets.Reveal()
		for i, text := range texts {
			texts[i] = strings.TrimSpace(text)
		}
		return texts
	}
	others := trimmed(back)
	if slices.ContainsFunc(trimmed(sign), func(text string) bool { return slices.Contains(others, text) }) {
		return errors.New("CALLBACK_SECRETS: one of them is one of WEBHOOK_SECRETS too, they must be others")
	}
	return nil
}

// callback is what a called service needs to call back. The service receives the deadline, and the scheduler the time
// that is left until then, so both count from the same moment.
type callback struct {
	URL        string    `json:"url"`
	Secret     string    `json:"secret"`
	DeadlineAt time.Time `json:"deadlineAt"`

	ends time.Time // the deadline by this process's monotonic clock
}

func (c *callback) left() time.Duration { return max(time.Until(c.ends), time.Millisecond) }

// callback returns the callback of an attempt. It fails if the installation accepts no callbacks.
func (c *Caller) callback(a *Attempt, timeout time.Duration) (*callback, *Failure) {
	switch {
	case c.callbackURL == "":
		return nil, notConfigured("CALLBACK_URL")
	case c.keys.Empty():
		return nil, notConfigured("CALLBACK_SECRETS")
	}
	ends := time.Now().Add(timeout)
	return &callback{
		URL: c.callbackURL, Secret: c.keys.Secret(a.Token), DeadlineAt: ends.UTC().Truncate(time.Millisecond), ends: ends,
	}, nil
}

// request returns a POST without a body yet. If the callback is nil, it has no callback headers.
func (c *Caller) request(ctx context.Context, a *Attempt, p callPayload, back *callback) (*http.Request, *Failure) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, p.URL, http.NoBody)
	if err != nil {
		return nil, invalidPayload(fmt.Errorf("payload.url: %w", err))
	}
	r.Header.Set("User-Agent", "jobweaver-worker")
	for name, value := range p.Headers {
		r.Header.Set(name, value)
	}
	if a.TraceID != uuid.Nil {
		r.Header.Set("X-Trace-Id", a.TraceID.String())
		r.Header.Set("Traceparent", jobevent.TraceParent(a.TraceID, a.Token, jobevent.Sampled(a.JobID)))
	}
	if a.Event != nil { // the ce- headers of a FUNCTION are about the attempt
		event, err := asciiJSON(a.Event)
		if err != nil {
			return nil, invalidPayload(fmt.Errorf("write the job's event: %w", err))
		}
		r.Header.Set("X-Event", event)
	}
	if back != nil {
		r.Header.Set("X-Callback-Url", back.URL)
		r.Header.Set("X-Callback-Secret", back.Secret)
		r.Header.Set("X-Callback-Deadline", back.DeadlineAt.Format(time.RFC3339Nano))
	}
	return r, nil
}

// call signs and sends the request, and returns an answer with a 2xx status, or one with another status and its
// failure. The context of r bounds the call. The size of an answer is bounded, because all slots may receive one at
// once.
func (c *Caller) call(r *http.Request, a *Attempt, body []byte, atMost int64) (*outbound.Answer, error) {
	if len(body) > 0 {
		// The body is sent again from its beginning if a kept connection turns out to be closed.
		r.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(body)), nil }
		r.Body, _ = r.GetBody()
		r.ContentLength = int64(len(body))
	}
	c.signer.Sign(r.Header, a.OwnerID, a.Token, time.Now(), body)
	answer, err := c.client.Do(r, atMost)
	if err != nil {
		return nil, callBroken(r, err)
	}
	if answer.Status < http.StatusOK || answer.Status >= http.StatusMultipleChoices {
		return answer, callRefused(r, answer)
	}
	return answer, nil
}

// callBroken returns the failure of a call without an answer. The service may have received it all the same: the next
// attempt calls with a token of its own.
func callBroken(r *http.Request, err error) error {
	if r.Context().Err() != nil {
		return context.Cause(r.Context())
	}
	f := &Failure{Code: string(apierror.CallFailed), Retryable: true, Private: true}
	if outbound.IsUncalled(err) {
		f.Code, f.Retryable = string(apierror.CallRefused), !outbound.IsFinal(err)
	}
	f.Message = called(r) + excerpt([]byte(err.Error()))
	return f
}

// called returns the name of a call for a message, without secrets that its URL may have.
func called(r *http.Request) string {
	return r.Method + " " + r.URL.Scheme + "://" + r.URL.Host + r.URL.EscapedPath() + ": "
}
