package funchost

import (
	"github.com/cloudevents/sdk-go/v2/event"

	"github.com/jobweaver/jobweaver/shared/apierror"
	"github.com/jobweaver/jobweaver/shared/eventkeys"
)

// signer returns what signs the events that go to the sink, or to topics; nil: nothing does.
func (c Config) signer() (*eventkeys.Keys, error) {
	if c.Sink == "" && c.EventSign != verifyAll {
		return nil, nil
	}
	return eventkeys.Open(c.EventKeysFile)
}

// httpVerifier returns what checks the events that come over HTTP; nil: nothing does.
func (c Config) httpVerifier() (*eventkeys.Keys, error) {
	if c.FuncTransport != TransportHTTP || c.EventVerify == verifyOff {
		return nil, nil
	}
	return eventkeys.Open(c.EventKeysFile)
}

// topicVerifier returns what checks the events from topics; nil: nothing does.
func (c Config) topicVerifier() (*eventkeys.Keys, error) {
	if c.EventVerify != verifyAll {
		return nil, nil
	}
	return eventkeys.Open(c.EventKeysFile)
}

// openKeys opens the keys by which h verifies.
func (h *host) openKeys() (err error) {
	if h.httpKeys, err = h.cfg.httpVerifier(); err != nil {
		return err
	}
	h.topicKeys, err = h.cfg.topicVerifier()
	return err
}

// verifyHTTP returns a 403 for an event over HTTP that no key has signed: Knative takes that to the dead letters and
// does not try again. A ping comes from a PingSource, which has no key, and only has the clock tick.
func (h *host) verifyHTTP(e event.Event) error {
	if e.Type() == typePing && h.f.Tick != nil {
		return nil
	}
	if err := h.httpKeys.Check(e); err != nil {
		return apierror.New(apierror.Forbidden, "%s", err)
	}
	return nil
}
