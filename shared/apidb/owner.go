package apidb

// Owner is whose rows a statement sees. The zero one sees those of nobody in particular.
type Owner struct {
	name     string
	everyone bool
}

// Everyone sees the rows of all owners.
var Everyone = Owner{everyone: true}

// OwnerOf sees the rows of one owner.
func OwnerOf(name string) Owner { return Owner{name: name} }
