package keystore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/jobweaver/jobweaver/shared/apidb"
	"github.com/jobweaver/jobweaver/shared/apidb/internal/gen"
	"github.com/jobweaver/jobweaver/shared/apierror"
)

// Key is the stored part of an API key. It does not contain the secret.
type Key struct {
	KeyID     string
	OwnerID   string // empty: a key of the installation
	Name      string
	Roles     []string
	Types     []string // job types whose attempts it may fetch, with the role work; empty: any
	Queues    []string // likewise
	Hash      []byte   // SHA-256 of the whole key
	CreatedAt time.Time
	CreatedBy string
	ExpiresAt *time.Time

	RevokedAt  *time.Time
	LastUsedAt *time.Time // to the minute
}

// Live reports whether the key is valid at an instant.
func (k *Key) Live(at time.Time) bool {
	return k.RevokedAt == nil && (k.ExpiresAt == nil || k.ExpiresAt.After(at))
}

// How many keys an owner may have: valid ones, and all including ended ones, which stay in the list.
const (
	maxLiveKeys = 1000
	maxKeys     = 10_000
)

// Bootstrap is the actor that makes the first admin keys. The SQL function api_keys_forget keeps them.
const Bootstrap = "bootstrap"

// Errors about keys.
var (
	ErrNoKey   error = apierror.New(apierror.NotFound, "there is no such API key")
	ErrKeyOver error = apierror.New(apierror.InvalidStateTransition, "the API key is revoked or has expired")
	ErrTooMany error = apierror.New(apierror.InvalidJobRequest, "there are %d API keys of this owner already", maxLiveKeys)
)

// ByID returns the existing keys among ids.
func (s *Store) ByID(ctx context.Context, ids []string) ([]Key, error) {
	rows, err := s.db.AuthQueries().KeysByID(ctx, ids)
	return newKeys(rows), apidb.Classify(fmt.Sprintf("read %d API keys", len(ids)), err)
}

// Get returns one of an owner's keys.
func (s *Store) Get(ctx context.Context, owner apidb.Owner, id string) (Key, error) {
	row, err := s.q.KeyOf(ctx, gen.KeyOfParams{KeyID: id, Everyone: owner.IsEveryone(), OwnerID: owner.ID()})
	return newKey(row), apidb.Classify("get API key "+id, noKey(err))
}

// List lists an owner's keys by their ids, or everyone's by owner and id, starting after a key.
func (s *Store) List(ctx context.Context, owner apidb.Owner, after string, limit int) ([]Key, error) {
	var rows []gen.ApiKey
	var err error
	if owner.IsEveryone() {
		rows, err = s.q.KeysAll(ctx, gen.KeysAllParams{After: after, MaxKeys: int32(limit)})
	} else {
		rows, err = s.q.KeysOfOwner(ctx, gen.KeysOfOwnerParams{OwnerID: owner.ID(), After: after, MaxKeys: int32(limit)})
	}
	return newKeys(rows), apidb.Classify("list API keys", err)
}

// Insert stores a new key.
func (s *Store) Insert(ctx context.Context, entry *apidb.Audit, key Key) (kept Key, err error) {
	err = apidb.AuditedTx(ctx, s.db, entry, func(q *gen.Queries, entry *apidb.Audit) error {
		entry.SetSubject(key.OwnerID, "key/"+key.KeyID)
		kept, err = insertKey(ctx, q, key)
		return err
	})
	return kept, apidb.Classify("keep API key "+key.KeyID, err)
}

// insertKey also deletes the owner's keys that ended 30 days ago, so that making and revoking keys does not fill the
// table.
func insertKey(ctx context.Context, q *gen.Queries, key Key) (Key, error) {
	if _, err := q.KeysForget(ctx, key.OwnerID); err != nil {
		return Key{}, err
	}
	live, err := q.KeysLive(ctx, gen.KeysLiveParams{OwnerID: key.OwnerID, Most: maxLiveKeys})
	if err != nil || live == maxLiveKeys {
		return Key{}, cmp.Or(err, ErrTooMany)
	}
	all, err := q.KeysCount(ctx, gen.KeysCountParams{OwnerID: key.OwnerID, Most: maxKeys})
	if err != nil || all == maxKeys {
		return Key{}, cmp.Or[error](err, &apidb.TooManyError{What: "API keys", Most: maxKeys})
	}
	row, err := q.KeyInsert(ctx, gen.KeyInsertParams{
		KeyID: key.KeyID, OwnerID: key.OwnerID, Name: key.Name, Roles: key.Roles, SecretHash: key.Hash,
		WorkTypes: given(key.Types), WorkQueues: given(key.Queues),
		CreatedBy: key.CreatedBy, ExpiresAt: key.ExpiresAt,
	})
	return newKey(row), err
}

// EnsureAdmin stores a key of the installation with the role admin, and enters it in the audit log. An existing key
// with this id stays as it is, even a revoked one; as for a new key, the method returns once a replica has it.
func (s *Store) EnsureAdmin(ctx context.Context, id string, hash []byte, name string) (Key, error) {
	err := s.db.Tx(ctx, func(q *gen.Queries) error {
		added, err := q.KeyEnsure(ctx, gen.KeyEnsureParams{KeyID: id, Name: name, SecretHash: hash, CreatedBy: Bootstrap})
		if err != nil {
			return err
		}
		if added == 0 {
			return q.AwaitReplicas(ctx)
		}
		return apidb.InsertAudit(ctx, q, []*apidb.Audit{
			{Actor: Bootstrap, Action: "key.create", Resource: "key/" + id, TraceID: uuid.New()},
		})
	})
	if err != nil {
		return Key{}, apidb.Classify("keep API key "+id, err)
	}
	return s.Get(ctx, apidb.Everyone, id)
}

// Revoke ends an owner's key. A key that has ended keeps its time.
func (s *Store) Revoke(ctx context.Context, entry *apidb.Audit, owner apidb.Owner, id string) (revoked Key, err error) {
	err = apidb.AuditedTx(ctx, s.db, entry, func(q *gen.Queries, entry *apidb.Audit) error {
		row, err := q.KeyRevoke(ctx, gen.KeyRevokeParams{KeyID: id, Everyone: owner.IsEveryone(), OwnerID: owner.ID()})
		entry.SetSubject(row.OwnerID, "key/"+id)
		revoked = newKey(row)
		return noKey(err)
	})
	return revoked, apidb.Classify("revoke API key "+id, err)
}

// Rotation bounds the keys of a rotation.
type Rotation struct {
	Overlap time.Duration // for which the old key stays valid at most
	MaxAge  time.Duration // longest lifetime of the new one; 0: no limit
}

// Rotate replaces an owner's key by one with a new id and hash. The new key has the same rights, and the lifetime for
// which the old one was made.
func (s *Store) Rotate(
	ctx context.Context, entry *apidb.Audit, owner apidb.Owner, id string, bounds Rotation, with Key,
) (kept Key, err error) {
	err = apidb.AuditedTx(ctx, s.db, entry, func(q *gen.Queries, entry *apidb.Audit) error {
		row, err := q.KeyLock(ctx, gen.KeyLockParams{KeyID: id, Everyone: owner.IsEveryone(), OwnerID: owner.ID()})
		if err != nil {
			return noKey(err)
		}
		old := newKey(row.ApiKey)
		entry.SetSubject(old.OwnerID, "key/"+id)
		if !old.Live(row.At) {
			return ErrKeyOver
		}
		with.OwnerID, with.Name, with.Roles = old.OwnerID, old.Name, old.Roles
		with.Types, with.Queues = old.Types, old.Queues
		lives := bounds.MaxAge
		if old.ExpiresAt != nil {
			if before := old.ExpiresAt.Sub(old.CreatedAt); lives == 0 || before < lives {
				lives = before
			}
		}
		if lives > 0 {
			until := row.At.Add(lives)
			with.ExpiresAt = &until
		}
		if err := q.KeyRetire(ctx, gen.KeyRetireParams{KeyID: id, Overlap: bounds.Overlap}); err != nil {
			return err
		}
		kept, err = insertKey(ctx, q, with)
		return err
	})
	return kept, apidb.Classify("rotate API key "+id, err)
}

// RecordUse stores when keys were last used.
func (s *Store) RecordUse(ctx context.Context, at map[string]time.Time) error {
	var p gen.KeysUsedParams
	for _, id := range slices.Sorted(maps.Keys(at)) { // in one order, so that concurrent calls do not deadlock
		p.KeyIDs, p.UsedAts = append(p.KeyIDs, id), append(p.UsedAts, at[id])
	}
	return apidb.Classify(fmt.Sprintf("enter use of %d API keys", len(at)), s.db.AuthQueries().KeysUsed(ctx, p))
}

func noKey(err error) error {
	if errors.Is(err, pgx.ErrNoRows) {
		return ErrNoKey
	}
	return err
}

func newKeys(rows []gen.ApiKey) []Key {
	keys := make([]Key, len(rows))
	for i, row := range rows {
		keys[i] = newKey(row)
	}
	return keys
}

func newKey(row gen.ApiKey) Key {
	return Key{
		KeyID: row.KeyID, OwnerID: row.OwnerID, Name: row.Name, Roles: row.Roles, Hash: row.SecretHash,
		CreatedAt: row.CreatedAt, CreatedBy: row.CreatedBy, ExpiresAt: row.ExpiresAt, RevokedAt: row.RevokedAt,
		LastUsedAt: row.LastUsedAt, Types: row.WorkTypes, Queues: row.WorkQueues,
	}
}

// given returns a list that is never NULL.
func given(names []string) []string { return append([]string{}, names...) }
