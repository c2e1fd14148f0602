package apidb

// Owner is the owner whose rows a statement sees. The zero Owner sees the rows without an owner. A statement answers
// for a row of another owner as if it did not exist, so that an owner learns nothing about other owners' rows.
type Owner struct {
	id       string
	everyone bool
}

// Everyone sees the rows of all owners.
var Everyone = Owner{everyone: true}

// OwnerOf returns the Owner that sees the rows of one owner.
func OwnerOf(id string) Owner { return Owner{id: id} }

// OwnerWith returns the Owner of a row: Everyone, or the owner with an id.
func OwnerWith(id string, everyone bool) Owner { return Owner{id: id, everyone: everyone} }

// IsEveryone reports whether the Owner stands for all owners.
func (o Owner) IsEveryone() bool { return o.everyone }

// ID returns the id of one owner; empty for Everyone.
func (o Owner) ID() string { return o.id }

// Filter returns the value with which a statement compares owner_id; nil: any.
func (o Owner) Filter() *string {
	if o.everyone {
		return nil
	}
	return &o.id
}

// Indexed reports whether the owner's rows stand together in indexes. Rows without an owner do not: an installation
// with one owner does not need these entries, and would pay for them.
func (o Owner) Indexed() bool { return !o.everyone && o.id != "" }

// Names returns the owner of a request that names one: Everyone may name any owner, another Owner always gets its own
// id.
func (o Owner) Names(named string) string {
	if o.everyone {
		return named
	}
	return o.id
}

// Sees reports whether the rows of an owner are visible to o.
func (o Owner) Sees(ownerID string) bool { return o.everyone || o.id == ownerID }

// Only returns the Owner that sees those of o's rows which have one owner; an empty ownerID excludes none. some is
// false if there can be none.
func (o Owner) Only(ownerID string) (whose Owner, some bool) {
	if ownerID == "" {
		return o, true
	}
	return OwnerOf(ownerID), o.Sees(ownerID)
}
