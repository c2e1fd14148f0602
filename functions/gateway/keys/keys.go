// Package keys serves API keys, the bootstrap key, and the keys with which receivers of webhooks verify.
package keys

import (
	"fmt"
	"net/http"
	"time"

	"github.com/gin-gonic/gin"

	"github.com/jobweaver/jobweaver/functions/gateway/access"
	"github.com/jobweaver/jobweaver/functions/gateway/audit"
	"github.com/jobweaver/jobweaver/functions/gateway/edge"
	"github.com/jobweaver/jobweaver/shared/apibody"
	"github.com/jobweaver/jobweaver/shared/apidb/keystore"
	"github.com/jobweaver/jobweaver/shared/apierror"
	"github.com/jobweaver/jobweaver/shared/apikey"
	"github.com/jobweaver/jobweaver/shared/jobview"
)

type keyBody struct {
	KeyID      string     `json:"keyId"`
	Key        string     `json:"key,omitempty"` // only in the response that made it: the server does not store it
	OwnerID    *string    `json:"ownerId"`
	Name       string     `json:"name"`
	Roles      []string   `json:"roles"`
	WorkTypes  []string   `json:"workTypes"`
	WorkQueues []string   `json:"workQueues"`
	CreatedAt  time.Time  `json:"createdAt"`
	CreatedBy  string     `json:"createdBy"`
	ExpiresAt  *time.Time `json:"expiresAt"`
	RevokedAt  *time.Time `json:"revokedAt"`
	LastUsedAt *time.Time `json:"lastUsedAt"`
}

func newKeyBody(k keystore.Key) keyBody {
	return keyBody{
		KeyID: k.KeyID, OwnerID: jobview.Given(k.OwnerID), Name: k.Name, Roles: k.Roles, CreatedAt: k.CreatedAt.UTC(),
		CreatedBy: k.CreatedBy, ExpiresAt: jobview.UTC(k.ExpiresAt), RevokedAt: jobview.UTC(k.RevokedAt),
		LastUsedAt: jobview.UTC(k.LastUsedAt), WorkTypes: jobview.List(k.Types), WorkQueues: jobview.List(k.Queues),
	}
}

// API has the endpoints of API keys.
type API struct {
	Store *keystore.Store
	Auth  *edge.Authenticator

	MaxAge   time.Duration // of keys that are made; 0: no limit
	TraceURL string        // shown by Me
	Sealing  bool          // shown by Me
}

// Create is POST /api/keys.
func (a *API) Create(c *gin.Context) error {
	asked, err := edge.ReadAs(c, apibody.MaxKeyBytes, apibody.DecodeNewKey)
	if err != nil {
		return err
	}
	p := access.Of(c.Request.Context())
	switch {
	case asked.OwnerID == "":
		asked.OwnerID = p.Owner
	case asked.OwnerID != p.Owner && !edge.IsInstallation(c):
		return apierror.New(apierror.Forbidden, "only an admin of the installation makes keys for another owner")
	}
	expiresAt, err := a.expiry(asked.ExpiresAt, time.Now())
	if err != nil {
		return err
	}
	ctx, cancel := edge.WithPatience(c)
	defer cancel()
	key, stored := newKey(p)
	stored.OwnerID, stored.Name, stored.Roles, stored.ExpiresAt = asked.OwnerID, asked.Name, asked.Roles, expiresAt
	stored.Types, stored.Queues = asked.Types, asked.Queues
	kept, err := a.Store.Insert(ctx, audit.Entry(c), stored)
	if err != nil {
		return err
	}
	return answerKey(c, key, kept)
}

// clockSkew is how much further than MaxAge an expiry may be: the client counted it from its own clock.
const clockSkew = time.Minute

// expiry returns when a key expires for which a client asked for an expiry; nil: never.
func (a *API) expiry(asked *time.Time, now time.Time) (*time.Time, error) {
	switch last := now.Add(a.MaxAge); {
	case asked != nil && !asked.After(now):
		return nil, edge.Invalid("expiresAt", "must be in the future")
	case a.MaxAge == 0:
		return asked, nil
	case asked == nil:
		return &last, nil
	case asked.After(last.Add(clockSkew)):
		return nil, edge.Invalid("expiresAt", fmt.Sprintf("must be within %s: the setting KEY_MAX_AGE", a.MaxAge))
	}
	return asked, nil
}

// newKey makes a key, and the row that is stored of it.
func newKey(by access.Principal) (apikey.Key, keystore.Key) {
	key := apikey.New()
	hash := key.Hash()
	return key, keystore.Key{KeyID: key.ID(), Hash: hash[:], CreatedBy: by.Actor}
}

// answerKey shows a new key. No other response does.
func answerKey(c *gin.Context, key apikey.Key, kept keystore.Key) error {
	body := newKeyBody(kept)
	body.Key = key.Reveal()
	edge.Locate(c, "/api/keys/"+kept.KeyID)
	return edge.Answer(c, http.StatusCreated, body)
}

type keyPage struct {
	Keys       []keyBody `json:"keys"`
	NextCursor *string   `json:"nextCursor"`
}

// List is GET /api/keys.
func (a *API) List(c *gin.Context) error {
	q := edge.NewQuery(c)
	limit := q.Integer("limit", edge.DefaultLimit, 1, edge.MaxLimit)
	after, owner := q.Formed("cursor", edge.KeyCursorForm), q.Checked("ownerId", apibody.CheckOwner)
	if err := q.Close("limit", "cursor", "ownerId"); err != nil {
		return err
	}
	whose, some := edge.OwnerOf(c).Only(owner)
	if !some {
		return edge.Answer(c, http.StatusOK, keyPage{Keys: []keyBody{}})
	}
	ctx, cancel := edge.WithPatience(c)
	defer cancel()
	keys, err := a.Store.List(ctx, whose, after, limit+1)
	if err != nil {
		return err
	}
	page := keyPage{Keys: make([]keyBody, min(len(keys), limit))}
	for i := range page.Keys {
		page.Keys[i] = newKeyBody(keys[i])
	}
	if len(keys) > limit {
		page.NextCursor = &keys[limit-1].KeyID
	}
	return edge.Answer(c, http.StatusOK, page)
}

// Get is GET /api/keys/{keyId}.
func (a *API) Get(c *gin.Context) error {
	id, err := keyID(c)
	if err != nil {
		return err
	}
	ctx, cancel := edge.WithPatience(c)
	defer cancel()
	key, err := a.Store.Get(ctx, edge.OwnerOf(c), id)
	if err != nil {
		return err
	}
	return edge.Answer(c, http.StatusOK, newKeyBody(key))
}

// Revoke is DELETE /api/keys/{keyId}: the key stays in the list, and no longer authenticates.
func (a *API) Revoke(c *gin.Context) error {
	id, err := keyID(c)
	if err != nil {
		return err
	}
	ctx, cancel := edge.WithPatience(c)
	defer cancel()
	key, err := a.Store.Revoke(ctx, audit.Entry(c), edge.OwnerOf(c), id)
	if err != nil {
		return err
	}
	a.forget(id)
	return edge.Answer(c, http.StatusOK, newKeyBody(key))
}

// Rotate is POST /api/keys/{keyId}/rotate.
func (a *API) Rotate(c *gin.Context) error {
	id, err := keyID(c)
	if err != nil {
		return err
	}
	var body []byte
	if c.Request.ContentLength != 0 {
		if body, err = edge.ReadJSON(c, apibody.MaxKeyBytes); err != nil {
			return err
		}
	}
	overlap, err := apibody.DecodeRotation(body)
	if err != nil {
		return err
	}
	ctx, cancel := edge.WithPatience(c)
	defer cancel()
	key, stored := newKey(access.Of(c.Request.Context()))
	how := keystore.Rotation{Overlap: overlap, MaxAge: a.MaxAge}
	kept, err := a.Store.Rotate(ctx, audit.Entry(c), edge.OwnerOf(c), id, how, stored)
	if err != nil {
		return err
	}
	a.forget(id)
	return answerKey(c, key, kept)
}

// forget makes a change of a key take effect here at once; at other gateways it does within 10 s.
func (a *API) forget(id string) {
	if a.Auth.Gate != nil {
		a.Auth.Gate.Keys.Forget(id)
	}
}

// keyID returns the key id in the path. A text without the form of a key id names no key.
func keyID(c *gin.Context) (string, error) {
	id := c.Param("keyId")
	if !apikey.CheckID(id) {
		return "", keystore.ErrNoKey
	}
	return id, nil
}
