package keystore_test

import (
	"testing"

	"github.com/jobweaver/jobweaver/shared/apidb"
	"github.com/jobweaver/jobweaver/shared/apidb/keystore"
)

// Without this, a client that makes and revokes keys in a loop would have 10,000 rows for good, and could make no more
// keys.
func TestANewKeyTakesThePlaceOfThoseThatEndedLongAgo(t *testing.T) {
	t.Parallel()
	h := open(t)
	insert := func(id string) {
		t.Helper()
		key := keystore.Key{KeyID: id, OwnerID: "acme", Name: "n", Roles: []string{"read"}, Hash: make([]byte, 32), CreatedBy: "key:a"}
		if _, err := h.Keys.Insert(t.Context(), nil, key); err != nil {
			t.Fatal(err)
		}
	}
	insert("old")
	insert("new")
	h.Exec(t, "UPDATE api_keys SET revoked_at = now() - CASE key_id WHEN 'old' THEN interval '31 days' ELSE interval '1 day' END")
	insert("third")
	keys, err := h.Keys.List(t.Context(), apidb.Everyone, "", 10)
	if err != nil || len(keys) != 2 || keys[0].KeyID != "new" || keys[1].KeyID != "third" {
		t.Errorf("there are %+v, %v", keys, err)
	}
}
