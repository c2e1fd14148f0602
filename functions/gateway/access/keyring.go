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
	// keyAge is how old a cached key may be, even while the database is away: a revoked key works for no longer than
	// this.
	keyAge = 10 * time.Second
	// keyAgain is the age at which a cached key is read again, so that no request has to wait for the read.
	keyAgain = keyAge / 2

	keysAtOnce  = 500                   // in one read
	readPause   = 20 * time.Millisecond // the pause between two reads, which limits their rate however many keys are tried
	readTimeout = 2 * time.Second

	maxStrangers = 5_000  // unread ids that wait for a read
	maxSuspects  = 500    // those of them that only addresses with too many failures sent; they are read last
	maxUnknown   = 10_000 // ids that are known not to exist

	usedEvery = 10 * time.Second // how often the use of keys is stored
	usedAge   = time.Minute      // how often the use of one key is stored
)

// Why a request is not authenticated. No response distinguishes these, because that would help an attacker to guess.
var (
	ErrUnknown = errors.New("no valid API key or token")
	ErrNoOwner = errors.New("the token names no owner")
	ErrBusy    = errors.New("too many unknown API keys are being tried")

	ErrIssuerAway = errors.New("the issuer of tokens cannot be reached")
)

// Keyring caches stored keys for at most keyAge. Requests never query the database: Run does, for all requests at once,
// so that many wrong keys cause no more queries than a few.
type Keyring struct {
	store  *keystore.Store
	stored func(context.Context, []string) ([]keystore.Key, error)

	mu      sync.Mutex
	forgot  int // counts calls of Forget: a read that began before the last one may have returned the old row
	known   map[string]*knownKey
	unknown map[string]time.Time // when they were read
	pending map[string]*answer
	suspect int // how many of the pending ids are suspect
	wake    chan struct{}

	entering telemetry.Trouble
}

// knownKey is a key that exists.
type knownKey struct {
	stored    keystore.Key
	readAt    time.Time
	usedAt    time.Time
	enteredAt time.Time // when its use was last stored
}

// answer is a pending read of one id.
type answer struct {
	done    chan struct{}
	suspect bool // all requests for the id came from addresses with too many failures
	err     error
}

// NewKeyring makes an empty keyring.
func NewKeyring(store *keystore.Store) *Keyring {
	return &Keyring{
		store: store, stored: store.ByID,
		known: map[string]*knownKey{}, unknown: map[string]time.Time{}, pending: map[string]*answer{},
		wake: make(chan struct{}, 1), entering: telemetry.Trouble{What: "store the use of API keys"},
	}
}

// Authenticate returns the principal of a key. It returns ErrUnknown for an invalid key, and ErrBusy or the error of
// the database if the key could not be read. suspect reports whether too many wrong keys came from the same address:
// then a key that is not cached is read after those of other addresses.
func (k *Keyring) Authenticate(ctx context.Context, key apikey.Key, suspect func() bool) (Principal, error) {
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

// check compares a key with the stored hash. It records the use only after the hash matched: other requests must not
// keep a key in the cache.
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

// look returns the cached key, or the zero key if it is known not to exist. Otherwise it returns the pending read to
// wait for.
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

// ask makes Run read a key. If a request from an address without failures asks for a suspect id, the id is no longer
// suspect.
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

// Forget makes the next request with a key wait until the key is read: this process has changed it.
func (k *Keyring) Forget(id string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.known, id)
	delete(k.unknown, id)
	k.forgot++
}

// Run reads the keys that requests wait for, and stores when keys were used, until ctx ends. A request that still waits
// is then not answered.
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

// read reads some of the pending keys, cached ones first, so that unknown senders cannot delay the others.
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
	if err == nil && forgot == k.forgot { // otherwise the waiting requests ask again
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

// turn is the order of reads: keys that are cached, then unknown ones, then suspect ones.
func (k *Keyring) turn(id string, coming *answer) int {
	switch {
	case k.known[id] != nil:
		return 0
	case !coming.suspect:
		return 1
	}
	return 2
}

// note caches the result of a read.
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

// enterUse stores which keys were used, each at most once a minute, and drops those that were not used from the cache.
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
