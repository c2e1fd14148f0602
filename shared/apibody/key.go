package apibody

import (
	"slices"
	"time"

	"github.com/jobweaver/jobweaver/shared/jobspec"
)

// Limits of requests about API keys.
const (
	MaxKeyBytes       = 16 << 10
	MaxOverlapSeconds = 30 * 24 * 60 * 60
	defaultOverlap    = 24 * time.Hour
)

// Roles returns the roles that a key may have.
var Roles = []string{"submit", "read", "operate", "work", "admin"}

// NewKey is the request for an API key.
type NewKey struct {
	Name      string
	Roles     []string
	Types     []string   // of the attempts that the role work may claim; empty: any
	Queues    []string   // likewise
	OwnerID   string     // empty: the owner of the key that makes the request
	ExpiresAt *time.Time // nil: never
}

// DecodeNewKey reads the request for an API key. It returns all problems as an *apierror.Error.
func DecodeNewKey(body []byte) (NewKey, error) {
	r := newReader(body)
	var key NewKey
	named := false
	complete := r.Object(func() {
		switch string(r.Name) {
		case "name":
			key.Name, named = r.Label(jobspec.MaxKey), true
		case "roles":
			key.Roles = r.roles()
		case "workTypes":
			if !r.Null() {
				key.Types = r.Names(MaxClaimTypes, func() string { return r.Checked(jobspec.WrongJobType) })
			}
		case "workQueues":
			if !r.Null() {
				key.Queues = r.Names(MaxClaimTypes, func() string { return r.Checked(jobspec.WrongQueue) })
			}
		case "ownerId":
			if !r.Null() {
				key.OwnerID = r.Label(jobspec.MaxKey)
			}
		case "expiresAt":
			if !r.Null() {
				key.ExpiresAt = r.Instant()
			}
		default:
			r.Unknown()
		}
	})
	if complete && !named {
		r.BadAt("name", "is required")
	}
	if complete && key.Roles == nil {
		r.BadAt("roles", "must name at least one role")
	}
	if complete && !slices.Contains(key.Roles, "work") {
		for name, list := range map[string][]string{"workTypes": key.Types, "workQueues": key.Queues} {
			if len(list) > 0 {
				r.BadAt(name, "goes only with the role work")
			}
		}
	}
	return key, r.Close().Err("API key")
}

func (r reader) roles() []string {
	roles := []string{}
	before := len(r.Problems)
	whole := r.Array(len(Roles), func(int) {
		role := r.OneOf(Roles)
		if slices.Contains(roles, role) {
			r.Bad("is there twice")
		}
		roles = append(roles, role)
	})
	if whole && len(roles) == 0 && len(r.Problems) == before {
		r.Bad("must name at least one role")
	}
	return roles
}

// DecodeRotation reads how long the replaced key stays valid; without a body, a day.
func DecodeRotation(body []byte) (overlap time.Duration, err error) {
	if len(body) == 0 {
		return defaultOverlap, nil
	}
	r := newReader(body)
	overlap = defaultOverlap
	r.Object(func() {
		if string(r.Name) == "overlapSeconds" {
			overlap = time.Duration(r.Integer(0, MaxOverlapSeconds)) * time.Second
		} else {
			r.Unknown()
		}
	})
	return overlap, r.Close().Err("rotation")
}
