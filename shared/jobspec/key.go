package jobspec

import (
	"slices"
	"time"
)

// Limits of what is asked of API keys.
const (
	MaxKeyBytes       = 16 << 10
	MaxOverlapSeconds = 30 * 24 * 60 * 60
	defaultOverlap    = 24 * time.Hour
)

// Roles are those that a key may have.
var Roles = []string{"submit", "read", "operate", "work", "admin"}

// NewKey is the request for an API key.
type NewKey struct {
	Name      string
	Roles     []string
	Types     []string   // of whose attempts the role work gives; empty: any
	Queues    []string   // likewise
	OwnerID   string     // empty: of who asks
	ExpiresAt *time.Time // nil: never
}

// DecodeNewKey reads one. It says all that is wrong, as an *apierror.Error.
func DecodeNewKey(body []byte) (NewKey, error) {
	if p := scanProblems(body, ""); p != nil {
		return NewKey{}, p.errIn("API key")
	}
	r := newReader(body, "")
	var key NewKey
	named := false
	complete := r.object(func() {
		switch string(r.name) {
		case "name":
			key.Name, named = r.label(MaxKey), true
		case "roles":
			key.Roles = r.roles()
		case "workTypes":
			if !r.null() {
				key.Types = r.names(MaxClaimTypes, func() string { return r.checked(checkJobType) })
			}
		case "workQueues":
			if !r.null() {
				key.Queues = r.names(MaxClaimTypes, func() string { return r.checked(checkQueue) })
			}
		case "ownerId":
			if !r.null() {
				key.OwnerID = r.label(MaxKey)
			}
		case "expiresAt":
			if !r.null() {
				key.ExpiresAt = r.instant()
			}
		default:
			r.unknown()
		}
	})
	if complete && !named {
		r.badAt("name", "is required")
	}
	if complete && key.Roles == nil {
		r.badAt("roles", "must name at least one role")
	}
	if complete && !slices.Contains(key.Roles, "work") {
		for name, list := range map[string][]string{"workTypes": key.Types, "workQueues": key.Queues} {
			if len(list) > 0 {
				r.badAt(name, "goes only with the role work")
			}
		}
	}
	return key, r.close().errIn("API key")
}

func (r *reader) roles() []string {
	roles := []string{}
	before := len(r.problems)
	whole := r.array(len(Roles), func(int) {
		role := r.oneOf(Roles)
		if slices.Contains(roles, role) {
			r.bad("is there twice")
		}
		roles = append(roles, role)
	})
	if whole && len(roles) == 0 && len(r.problems) == before {
		r.bad("must name at least one role")
	}
	return roles
}

// DecodeRotation reads for how long the key that is replaced lives on; without a body, a day.
func DecodeRotation(body []byte) (overlap time.Duration, err error) {
	if len(body) == 0 {
		return defaultOverlap, nil
	}
	if p := scanProblems(body, ""); p != nil {
		return 0, p.errIn("rotation")
	}
	r := newReader(body, "")
	overlap = defaultOverlap
	r.object(func() {
		if string(r.name) == "overlapSeconds" {
			overlap = time.Duration(r.integer(0, MaxOverlapSeconds)) * time.Second
		} else {
			r.unknown()
		}
	})
	return overlap, r.close().errIn("rotation")
}
