package access

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jobweaver/jobweaver/shared/apidb/keystore"
	"github.com/jobweaver/jobweaver/shared/apikey"
)

func TestKeyReadBeforeItsRevocationIsNotCached(t *testing.T) {
	t.Parallel()
	key := apikey.New()
	hash := key.Hash()
	live := keystore.Key{KeyID: key.ID(), Hash: hash[:], Roles: []string{"read"}}
	now := time.Now()
	revoked := live
	revoked.RevokedAt = &now
	k := NewKeyring(nil)
	reads := 0
	k.stored = func(context.Context, []string) ([]keystore.Key, error) {
		if reads++; reads > 1 {
			return []keystore.Key{revoked}, nil
		}
		k.Forget(key.ID()) // the key is revoked while the database's response is on its way
		return []keystore.Key{live}, nil
	}
	ctx, cancel := context.WithCancel(t.Context())
	var all sync.WaitGroup
	all.Go(func() { k.Run(ctx) })
	defer all.Wait()
	defer cancel()
	if p, err := k.Authenticate(ctx, key, func() bool { return false }); !errors.Is(err, ErrUnknown) {
		t.Errorf("it lets in %+v, %v", p, err)
	}
}

// hanging makes an issuer that responds only when the test lets it.
func hanging(t *testing.T) (i *Issuer, asked *atomic.Int32, answer chan<- struct{}) {
	t.Helper()
	asked = &atomic.Int32{}
	gate := make(chan struct{}, 100)
	var server *httptest.Server
	server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		select {
		case <-gate:
		case <-r.Context().Done():
			return
		}
		body := `{"keys": []}`
		if strings.HasPrefix(r.URL.Path, "/.well-known/") {
			body = `{"issuer": "` + server.URL + `", "jwks_uri": "` + server.URL + `/keys"}`
		}
		_, _ = w.Write([]byte(body))
	}))
	t.Cleanup(server.Close)
	i, err := NewIssuer(OIDCConfig{Issuer: server.URL, Audience: "jobweaver"})
	if err != nil {
		t.Fatal(err)
	}
	return i, asked, gate
}

func TestTokensWhileTheIssuerHangsWaitForOneRequest(t *testing.T) {
	t.Parallel()
	i, asked, _ := hanging(t)
	i.waits = 2 * time.Second
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			if _, err := i.Authenticate(t.Context(), "a.b.c"); !errors.Is(err, ErrIssuerAway) {
				t.Errorf("answered %v", err)
			}
		})
	}
	all.Wait()
	if n := asked.Load(); n != 1 {
		t.Errorf("it was asked %d times, one after the other", n)
	}
}

func TestTokensWithUnknownKeysDoNotBlockRequestsToTheIssuer(t *testing.T) {
	t.Parallel()
	i, asked, answer := hanging(t)
	for range 100 {
		answer <- struct{}{}
	}
	// A token with {"alg":"RS256","kid":"none"} and invalid claims and signature.
	const unknown = "eyJhbGciOiJSUzI1NiIsImtpZCI6Im5vbmUifQ.e30.AAAA"
	for range 20 {
		if _, err := i.Authenticate(t.Context(), unknown); !errors.Is(err, ErrUnknown) {
			t.Fatalf("answered %v", err)
		}
	}
	before := asked.Load()
	i.mu.Lock()
	i.madeAt, i.triedAt = time.Now().Add(-2*keysFresh), time.Time{}
	i.mu.Unlock()
	if _, err := i.current(); err != nil || time.Since(i.madeAt) > keysFresh || asked.Load() != before+1 {
		t.Errorf("after %d calls it was asked %d times, %v", before, asked.Load()-before, err)
	}
}

// An attacker with many wrong keys must not delay the keys of other clients.
func TestKeysFromAnAddressWithManyFailuresAreReadLast(t *testing.T) {
	t.Parallel()
	k := NewKeyring(nil)
	suspect, stranger := func() bool { return true }, func() bool { return false }
	now := time.Now()
	for range maxSuspects {
		if _, _, err := k.look(apikey.New().ID(), now, suspect); err != nil {
			t.Fatal(err)
		}
	}
	if _, _, err := k.look(apikey.New().ID(), now, suspect); !errors.Is(err, ErrBusy) {
		t.Errorf("guessers have more than their share: %v", err)
	}
	for range maxStrangers {
		if _, _, err := k.look(apikey.New().ID(), now, stranger); err != nil {
			t.Fatalf("guessers take the place of others: %v", err)
		}
	}
	for range maxStrangers / keysAtOnce {
		_, answers, _ := k.take()
		for _, coming := range answers {
			if coming.suspect {
				t.Fatal("a guesser's key is read before others'")
			}
		}
		for id, coming := range k.pending {
			for _, read := range answers {
				if read == coming {
					delete(k.pending, id)
				}
			}
		}
	}
	if ids, _, _ := k.take(); len(ids) != maxSuspects {
		t.Errorf("%d keys of guessers are read in the end", len(ids))
	}
}

// An issuer that hangs must not lock out users: its old keys verify tokens for up to keysStale.
func TestOldKeysOfAnIssuerStayValidWhileItHangs(t *testing.T) {
	t.Parallel()
	i, asked, answer := hanging(t)
	i.waits = 5 * time.Second
	answer <- struct{}{}
	before, err := i.current()
	if err != nil {
		t.Fatal(err)
	}
	i.mu.Lock()
	i.madeAt, i.triedAt = time.Now().Add(-2*keysFresh), time.Time{}
	i.mu.Unlock()
	var asks sync.WaitGroup
	asks.Go(func() { _, _ = i.current() })
	for asked.Load() < 2 {
		runtime.Gosched()
	}
	began := time.Now()
	if now, err := i.current(); err != nil || now != before || time.Since(began) > i.waits/2 {
		t.Errorf("after %s: %v", time.Since(began), err)
	}
	answer <- struct{}{}
	asks.Wait()
	if now, err := i.current(); err != nil || now == before {
		t.Errorf("what was asked for is not used: %v", err)
	}
}
