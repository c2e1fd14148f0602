package access

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/jobweaver/jobweaver/shared/apidb/keystore"
	"github.com/jobweaver/jobweaver/shared/apikey"
	"github.com/jobweaver/jobweaver/shared/telemetry"
)

const (
	// keyAge is how old what is known of a key may be, whatever is away: a revoked one is good for no longer.
	keyAge = 10 * time.Second
	// keyAgain is the age at which it is read again, so that no request has to wait for it.
	keyAgain = keyAge / 2

	keysAtOnce  = 500                   // of one read
	readPause   = 20 * time.Millisecond // between two reads: so many a second there are at most, whoever tries what
	readTimeout = 2 * time.Second

	maxStrangers = 5_000  // ids that nobody here has seen, waiting to be read
	maxSuspects  = 500    // of those beside, from addresses of too many failures: they are read last
	maxUnknown   = 10_000 // ids of which is known that they are none

	usedEvery = 10 * time.Second // how often the use of keys is entered
	usedAge   = time.Minute      // how often that of one key
)

// What is wrong with a request that says who it is from. No answer says which it is, or who guesses would learn.
var (
	ErrUnknown = errors.New("no valid API key or token")
	ErrNoOwner = errors.New("the token names no owner")
	ErrBusy    = errors.New("too many unknown API keys are being tried")

	ErrIssuerAway = errors.New("the issuer of tokens cannot be reached")
)

// Keyring knows keys by what is stored of them, as it was at most keyAge ago. Requests never ask the database:
// Run does, for all of them at once, so that it makes no difference how many wrong keys somebody tries.
type Keyring struct {
	store  *keystore.Store
	stored func(context.Context, []string) ([]keystore.Key, error)

	mu      sync.Mutex
	forgot  int // how often: what was being read meanwhile may be what was there before
	known   map[string]*knownKey
	unknown map[string]time.Time // when they were read
	pending map[string]*answer
	suspect int // of those pending
	wake    chan struct{}

	entering telemetry.Trouble
}

// knownKey is a key that there is.
type knownKey struct {
	stored    keystore.Key
	readAt    time.Time
	usedAt    time.Time
	enteredAt time.Time // when its use was last entered
}

// answer comes when the database has been asked.
type answer struct {
	done    chan struct{}
	suspect bool // only addresses of too many failures have asked
	err     error
}

// NewKeyring makes a keyring that knows no key yet.
func NewKeyring(store *keystore.Store) *Keyring {
	return &Keyring{
		store: store, stored: store.ByID,
		known: map[string]*knownKey{}, unknown: map[string]time.Time{}, pending: map[string]*answer{},
		wake: make(chan struct{}, 1), entering: telemetry.Trouble{What: "enter the use of API keys"},
	}
}

// Who says who comes with a key. ErrUnknown: nobody; ErrBusy or the database's error: that could not be found out.
// suspect reports whether too many wrong keys came from the same address; then a key that nobody here has seen is read
// after those of others.
func (k *Keyring) Who(ctx context.Context, key apikey.Key, suspect func() bool) (Principal, error) {
	for {
		now := time.Now()
		stored, coming, err := k.look(key.ID(), now, suspect)
		if err != nil {
			return Principal{}, err
		}
		if coming == nil {
			return k.check(key, stored, now)
		}
		select {
		case <-ctx.Done():
			return Principal{}, context.Cause(ctx)
		case <-coming.done:
			if coming.err != nil {
				return Principal{}, coming.err
			}
		}
	}
}

// check compares a key with what is stored under its id. Only who has the key uses it.
func (k *Keyring) check(key apikey.Key, stored keystore.Key, now time.Time) (Principal, error) {
	if !key.Matches(stored.Hash) || !stored.Live(now) {
		return Principal{}, ErrUnknown
	}
	k.mu.Lock()
	if held := k.known[stored.KeyID]; held != nil {
		held.usedAt = now
	}
	k.mu.Unlock()
	roles, err := ParseRoles(stored.Roles)
	return Principal{
		Owner: stored.OwnerID, Actor: "key:" + stored.KeyID, Roles: roles, Types: stored.Types, Queues: stored.Queues,
	}, err
}

// look gives what is known of a key, the zero one where it is known that there is none, or what to wait for.
func (k *Keyring) look(id string, now time.Time, suspect func() bool) (keystore.Key, *answer, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if held := k.known[id]; held != nil {
		age := now.Sub(held.readAt)
		if age < keyAgain {
			return held.stored, nil, nil
		}
		coming := k.ask(id, false)
		if age < keyAge {
			coming = nil
		}
		return held.stored, coming, nil
	}
	if at, there := k.unknown[id]; there && now.Sub(at) < keyAge {
		return keystore.Key{}, nil, nil
	}
	odd := suspect()
	if k.pending[id] == nil && (odd && k.suspect >= maxSuspects || !odd && len(k.pending)-k.suspect >= maxStrangers) {
		return keystore.Key{}, nil, ErrBusy
	}
	return keystore.Key{}, k.ask(id, odd), nil
}

// ask has Run read about a key. One that somebody else asks about as well is no suspect's any more.
func (k *Keyring) ask(id string, suspect bool) *answer {
	coming := k.pending[id]
	switch {
	case coming == nil:
		coming = &answer{done: make(chan struct{}), suspect: suspect}
		k.pending[id] = coming
		if suspect {
			k.suspect++
		}
		k.rouse()
	case coming.suspect && !suspect:
		coming.suspect = false
		k.suspect--
	}
	return coming
}

func (k *Keyring) rouse() {
	select {
	case k.wake <- struct{}{}:
	default:
	}
}

// Forget has the next request with a key wait until it has been read: it was changed here.
func (k *Keyring) Forget(id string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.known, id)
	delete(k.unknown, id)
	k.forgot++
}

// Run reads what requests ask about, and enters when keys were used, until ctx ends. Requests that are still there
// then get no answer.
func (k *Keyring) Run(ctx context.Context) {
	enter := time.NewTicker(usedEvery)
	defer enter.Stop()
	for {
		select {
		case <-ctx.Done():
			last, cancel := context.WithTimeout(context.WithoutCancel(ctx), readTimeout)
			k.enterUse(last, time.Now())
			cancel()
			return
		case now := <-enter.C:
			k.enterUse(ctx, now)
		case <-k.wake:
			k.read(ctx)
			select {
			case <-ctx.Done():
			case <-time.After(readPause):
			}
		}
	}
}

// read asks the database about some of those asked for: about those it knows first, so that no stranger keeps
// them waiting.
func (k *Keyring) read(ctx context.Context) {
	ids, answers, forgot := k.take()
	if len(ids) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	at := time.Now()
	stored, err := k.stored(ctx, ids)
	k.mu.Lock()
	defer k.mu.Unlock()
	if err == nil && forgot == k.forgot { // else those who wait ask again
		k.note(ids, stored, at)
	}
	for i, id := range ids {
		answers[i].err = err
		delete(k.pending, id)
		if answers[i].suspect {
			k.suspect--
		}
		close(answers[i].done)
	}
	if len(k.pending) > 0 {
		k.rouse()
	}
}

func (k *Keyring) take() (ids []string, answers []*answer, forgot int) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for turn := range 3 {
		for id, coming := range k.pending {
			if len(ids) < keysAtOnce && k.turn(id, coming) == turn {
				ids, answers = append(ids, id), append(answers, coming)
			}
		}
	}
	return ids, answers, k.forgot
}

// turn is when a key is read: those that are known, those of strangers, those of suspects.
func (k *Keyring) turn(id string, coming *answer) int {
	switch {
	case k.known[id] != nil:
		return 0
	case !coming.suspect:
		return 1
	}
	return 2
}

// note keeps what was read.
func (k *Keyring) note(ids []string, stored []keystore.Key, at time.Time) {
	if len(k.unknown)+len(ids) > maxUnknown {
		clear(k.unknown)
	}
	for _, id := range ids {
		k.unknown[id] = at
	}
	for _, key := range stored {
		delete(k.unknown, key.KeyID)
		held := k.known[key.KeyID]
		if held == nil {
			held = &knownKey{}
			k.known[key.KeyID] = held
		}
		held.stored, held.readAt = key, at
	}
	for _, id := range ids {
		if _, none := k.unknown[id]; none {
			delete(k.known, id)
		}
	}
}

// enterUse enters which keys were used, each once a minute, and forgets those that were not.
func (k *Keyring) enterUse(ctx context.Context, now time.Time) {
	used := map[string]time.Time{}
	k.mu.Lock()
	maps.DeleteFunc(k.known, func(id string, held *knownKey) bool {
		fresh := held.usedAt.After(held.enteredAt)
		if fresh && now.Sub(held.enteredAt) >= usedAge {
			used[id], held.enteredAt = held.usedAt, now
		}
		return !fresh && now.Sub(held.readAt) > keyAge
	})
	k.mu.Unlock()
	for ids := range slices.Chunk(slices.Sorted(maps.Keys(used)), keysAtOnce) {
		part := map[string]time.Time{}
		for _, id := range ids {
			part[id] = used[id]
		}
		err := k.store.RecordUse(ctx, part)
		k.entering.Note(ctx, err)
		if err != nil {
			return
		}
	}
}
