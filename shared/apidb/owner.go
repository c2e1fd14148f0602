package apidb

// Owner is the owner whose rows a statement sees. The zero Owner sees the rows without an owner. For a row of another
// owner a statement answers as if there were none, so that an owner learns nothing about the rows of others.
type Owner struct {
	id       string
	everyone bool
}

// Everyone sees the rows of all owners.
var Everyone = Owner{everyone: true}

// OwnerOf sees the rows of one owner.
func OwnerOf(id string) Owner { return Owner{id: id} }

// OwnerWith is the owner of a row: everyone together, or the one with an id.
func OwnerWith(id string, everyone bool) Owner { return Owner{id: id, everyone: everyone} }

// IsEveryone reports whether the Owner stands for all owners.
func (o Owner) IsEveryone() bool { return o.everyone }

// ID is the id of one owner; empty for Everyone.
func (o Owner) ID() string { return o.id }

// Filter is the value with which a statement compares owner_id; nil: it compares with nothing.
func (o Owner) Filter() *string {
	if o.everyone {
		return nil
	}
	return &o.id
}

// Indexed reports whether the owner's rows stand together in indexes. Rows without an owner do not: they would pay for
// entries that an installation with one owner does not need.
func (o Owner) Indexed() bool { return !o.everyone && o.id != "" }

// Names returns the owner of a request that names one: an Owner that sees all rows may name any, another always gets
// itself.
func (o Owner) Names(said string) string {
	if o.everyone {
		return said
	}
	return o.id
}

// Sees reports whether the rows of an owner are visible to it.
func (o Owner) Sees(ownerID string) bool { return o.everyone || o.id == ownerID }
