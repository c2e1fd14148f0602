package funchost

import (
	"github.com/cloudevents/sdk-go/v2/event"

	"github.com/jobweaver/jobweaver/shared/apierror"
	"github.com/jobweaver/jobweaver/shared/eventkeys"
)

// signer returns the keys that sign events for the sink or for topics; nil: they are not signed.
func (c Config) signer() (*eventkeys.Keys, error) {
	if c.Sink == "" && c.EventSign != verifyAll {
		return nil, nil
	}
	return eventkeys.Open(c.EventKeysFile)
}

// httpVerifier returns the keys that verify events over HTTP; nil: they are not verified.
func (c Config) httpVerifier() (*eventkeys.Keys, error) {
	if c.FuncTransport != TransportHTTP || c.EventVerify == verifyOff {
		return nil, nil
	}
	return eventkeys.Open(c.EventKeysFile)
}

// topicVerifier returns the keys that verify events from topics; nil: they are not verified.
func (c Config) topicVerifier() (*eventkeys.Keys, error) {
	if c.EventVerify != verifyAll {
		return nil, nil
	}
	return eventkeys.Open(c.EventKeysFile)
}

// openKeys opens the keys with which h verifies events.
func (h *host) openKeys() (err error) {
	if h.httpKeys, err = h.cfg.httpVerifier(); err != nil {
		return err
	}
	h.topicKeys, err = h.cfg.topicVerifier()
	return err
}

// verifyHTTP returns a 403 for an event over HTTP that no key has signed: Knative then passes it to its dead-letter
// sink and does not retry. A ping comes from a PingSource, which has no key, and only makes the clock tick.
func (h *host) verifyHTTP(e event.Event) error {
	if e.Type() == typePing && h.f.Tick != nil {
		return nil
	}
	if err := h.httpKeys.Check(e); err != nil {
		return apierror.New(apierror.Forbidden, "%s", err)
	}
	return nil
}
