package apidb

// Owner is whose rows a statement sees. The zero one sees those of nobody in particular. What is another's is not there
// for it: there is no other answer, so that nobody learns what others have.
type Owner struct {
	name     string
	everyone bool
}

// Everyone sees the rows of all owners.
var Everyone = Owner{everyone: true}

// OwnerOf sees the rows of one owner.
func OwnerOf(name string) Owner { return Owner{name: name} }

// filter is what a statement compares owners with; nil: with nothing.
func (o Owner) filter() *string {
	if o.everyone {
		return nil
	}
	return &o.name
}

// indexed says whether the owner's rows stand together in indexes: those of nobody do not, so that they pay for none.
func (o Owner) indexed() bool { return !o.everyone && o.name != "" }

// Names is the owner of what somebody asks for who says that it is to be said's: only who sees everyone's may say so.
func (o Owner) Names(said string) string {
	if o.everyone {
		return said
	}
	return o.name
}

// sees says whether it sees an owner's rows.
func (o Owner) sees(ownerID string) bool { return o.everyone || o.name == ownerID }
