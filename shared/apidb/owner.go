package apidb

// Owner is whose rows a statement sees. The zero one sees those of nobody in particular. What is another's is not there
// for it: there is no other answer, so that nobody learns what others have.
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

// IsEveryone says whether it is all owners together.
func (o Owner) IsEveryone() bool { return o.everyone }

// ID is the id of one owner; empty for Everyone.
func (o Owner) ID() string { return o.id }

// Filter is what a statement compares owners with; nil: with nothing.
func (o Owner) Filter() *string {
	if o.everyone {
		return nil
	}
	return &o.id
}

// Indexed says whether the owner's rows stand together in indexes: those of nobody do not, so that they pay for none.
func (o Owner) Indexed() bool { return !o.everyone && o.id != "" }

// Names is the owner of what somebody asks for who says that it is to be said's: only who sees everyone's may say so.
func (o Owner) Names(said string) string {
	if o.everyone {
		return said
	}
	return o.id
}

// Sees says whether it sees an owner's rows.
func (o Owner) Sees(ownerID string) bool { return o.everyone || o.id == ownerID }
