package client

import (
	"context"
	"encoding/json"
	"iter"
	"net/http"
	"time"
)

// KeyRequest is a request for an API key.
type KeyRequest struct {
	Name       string    `json:"name"`
	Roles      []string  `json:"roles"`                // submit, read, operate, work, admin
	WorkTypes  []string  `json:"workTypes,omitempty"`  // for the role work; empty: any
	WorkQueues []string  `json:"workQueues,omitempty"` // for the role work; empty: any
	OwnerID    string    `json:"ownerId,omitempty"`    // empty: the owner of the request
	ExpiresAt  time.Time `json:"expiresAt,omitzero"`
}

// Key is what is stored of an API key. Key itself is set only in the answer of Create and Rotate.
type Key struct {
	KeyID      string     `json:"keyId"`
	OwnerID    string     `json:"ownerId"` // empty: it belongs to the installation
	Name       string     `json:"name"`
	Roles      []string   `json:"roles"`
	WorkTypes  []string   `json:"workTypes"`
	WorkQueues []string   `json:"workQueues"`
	CreatedAt  time.Time  `json:"createdAt"`
	CreatedBy  string     `json:"createdBy"`
	ExpiresAt  *time.Time `json:"expiresAt"`
	RevokedAt  *time.Time `json:"revokedAt"`
	LastUsedAt *time.Time `json:"lastUsedAt"` // to the minute
	Key        string     `json:"key"`
}

// Keys are the API keys.
type Keys struct{ c *Client }

// Create creates an API key. Only this answer has the key.
func (k Keys) Create(ctx context.Context, key KeyRequest) (*Key, error) {
	return answer[Key](ctx, k.c, request{method: http.MethodPost, path: "/api/keys"}, key)
}

// Get reads what is stored of a key.
func (k Keys) Get(ctx context.Context, id string) (*Key, error) {
	return fetch[Key](ctx, k.c, place("keys", id))
}

// List reads the keys of an owner, also revoked ones, page by page; those that the client can see if ownerID is empty.
// It ends after an error.
func (k Keys) List(ctx context.Context, ownerID string) iter.Seq2[*Key, error] {
	return list[Key](ctx, k.c, "/api/keys", "keys", given("ownerId", ownerID))
}

// Revoke revokes a key: within 10 s every gateway refuses it.
func (k Keys) Revoke(ctx context.Context, id string) (*Key, error) {
	return answer[Key](ctx, k.c, request{method: http.MethodDelete, path: place("keys", id)}, nil)
}

// Rotate replaces a key by a new one with the same rights. The old one expires after overlap.
func (k Keys) Rotate(ctx context.Context, id string, overlap time.Duration) (*Key, error) {
	r := request{method: http.MethodPost, path: place("keys", id, "rotate")}
	return answer[Key](ctx, k.c, r, map[string]int64{"overlapSeconds": int64(overlap / time.Second)})
}

// AuditEntry is an entry of the audit log.
type AuditEntry struct {
	ID         string          `json:"id"`
	At         time.Time       `json:"at"`
	OwnerID    string          `json:"ownerId"`
	Actor      string          `json:"actor"`
	Action     string          `json:"action"`
	Resource   string          `json:"resource"`
	JobIDs     []string        `json:"jobIds"`
	RemoteAddr string          `json:"remoteAddr"`
	UserAgent  string          `json:"userAgent"`
	TraceID    string          `json:"traceId"`
	Details    json.RawMessage `json:"details"`
}

// AuditFilter selects entries: they must match all fields that are set.
type AuditFilter struct {
	OwnerID, JobID, Actor, Action string
	Since, Until                  time.Time
}

// Audit is the audit log.
type Audit struct{ c *Client }

// List reads all entries that match a filter, newest first, page by page. It ends after an error.
func (a Audit) List(ctx context.Context, filter AuditFilter) iter.Seq2[*AuditEntry, error] {
	return list[AuditEntry](ctx, a.c, "/api/audit", "entries", given(
		"ownerId", filter.OwnerID, "jobId", filter.JobID, "actor", filter.Actor, "action", filter.Action,
		"since", instant(filter.Since), "until", instant(filter.Until)))
}

// Me is who a client is to the gateway.
type Me struct {
	Actor        string   `json:"actor"`
	OwnerID      string   `json:"ownerId"`
	Roles        []string `json:"roles"`
	Installation bool     `json:"installation"` // it has the rights of an admin of the installation
	TraceURL     string   `json:"traceUrl"`
	Sealing      bool     `json:"sealing"` // payloads are sealed, and no filter finds jobs by their values
}

// WebhookSecrets are the keys by which receivers verify the messages of JobWeaver, newest first.
type WebhookSecrets struct {
	OwnerID string   `json:"ownerId"`
	End     []string `json:"end"`  // of messages about the ends of jobs
	Call    []string `json:"call"` // of the requests of EXTERNAL and FUNCTION jobs
}
