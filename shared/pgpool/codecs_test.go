package pgpool_test

import (
	"encoding/json"
	"reflect"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/jobweaver/jobweaver/migrations"
	"github.com/jobweaver/jobweaver/shared/pgpool"
	"github.com/jobweaver/jobweaver/shared/pgtest"
)

func TestASliceArrivesAsTheArrayThatItIs(t *testing.T) {
	t.Parallel()
	pool := open(t, pgtest.Database(t, migrations.API))
	at := time.Date(1999, 12, 31, 23, 59, 59, 999_999_999, time.FixedZone("", 3600))
	id := uuid.MustParse("01991234-1234-7123-8123-123456789012")
	for name, c := range map[string]struct {
		typ   string
		slice any
		text  string // as the server prints it
	}{
		"ids":           {"uuid[]", []uuid.UUID{id, uuid.Nil}, "{01991234-1234-7123-8123-123456789012,00000000-0000-0000-0000-000000000000}"},
		"texts":         {"text[]", []string{"", "a,\"b\"", "ü"}, `{"","a,\"b\"",ü}`},
		"JSON":          {"json[]", []json.RawMessage{[]byte(`{"a": 1}`), nil, []byte(`null`)}, `{"{\"a\": 1}",NULL,"null"}`},
		"binary JSON":   {"jsonb[]", []json.RawMessage{[]byte(`{"a": 1}`), nil}, `{"{\"a\": 1}",NULL}`},
		"instants":      {"timestamptz[]", []time.Time{at, {}}, `{"1999-12-31 22:59:59.999999+00","0001-01-01 00:00:00+00"}`},
		"small numbers": {"smallint[]", []int16{-1, 32767}, "{-1,32767}"},
		"numbers":       {"int[]", []int32{-1, 1 << 30}, "{-1,1073741824}"},
		"large numbers": {"bigint[]", []int64{-1, 1 << 62}, "{-1,4611686018427387904}"},
		"truths":        {"boolean[]", []bool{true, false}, "{t,f}"},
		"nothing":       {"int[]", []int32{}, "{}"},
	} {
		var text string
		if err := pool.QueryRow(t.Context(), "SELECT ($1::"+c.typ+")::text", c.slice).Scan(&text); err != nil || text != c.text {
			t.Errorf("%s arrived as %s, want %s (%v)", name, text, c.text, err)
		}
		back := reflect.New(reflect.TypeOf(c.slice))
		if name == "JSON" || name == "binary JSON" {
			continue // a slice of this type cannot hold the NULL that comes back
		}
		err := pool.QueryRow(t.Context(), "SELECT $1::"+c.typ, c.slice).Scan(back.Interface())
		if err != nil || back.Elem().Len() != reflect.ValueOf(c.slice).Len() {
			t.Errorf("%s came back as %v (%v)", name, back.Elem(), err)
		}
	}
	var isNull bool
	if err := pool.QueryRow(t.Context(), "SELECT $1::uuid[] IS NULL", []uuid.UUID(nil)).Scan(&isNull); err != nil || !isNull {
		t.Errorf("no slice is not NULL (%v)", err)
	}
}

func TestJSONComesBackAsItIsStored(t *testing.T) {
	t.Parallel()
	pool := open(t, pgtest.Database(t, migrations.API))
	var stored, none, word json.RawMessage
	var binary json.RawMessage
	err := pool.QueryRow(t.Context(), `SELECT '{ "a" : 1 }'::json, NULL::json, 'null'::json, '{ "a" : 1 }'::jsonb`).
		Scan(&stored, &none, &word, &binary)
	if err != nil || string(stored) != `{ "a" : 1 }` || none != nil || string(word) != "null" || string(binary) != `{"a": 1}` {
		t.Errorf("got %s, %s, %s, %s (%v)", stored, none, word, binary, err)
	}
	var parsed struct{ A int }
	if err := pool.QueryRow(t.Context(), `SELECT '{"a": 1}'::json`).Scan(&parsed); err != nil || parsed.A != 1 {
		t.Errorf("parsed %+v (%v)", parsed, err)
	}
}

func TestTheTypesAreRegisteredWithAnyParametersOfTheAddress(t *testing.T) {
	t.Parallel()
	pool, err := pgpool.Open(t.Context(), pgtest.Database(t, migrations.API)+"&connect_timeout=7")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	id := uuid.New()
	var back uuid.UUID
	if err := pool.QueryRow(t.Context(), "SELECT $1::uuid", id).Scan(&back); err != nil || back != id {
		t.Errorf("%s came back as %s (%v)", id, back, err)
	}
	some, none := new(uuid.UUID), new(uuid.UUID)
	err = pool.QueryRow(t.Context(), "SELECT $1::uuid, NULL::uuid", id).Scan(&some, &none)
	if err != nil || some == nil || *some != id || none != nil {
		t.Errorf("%s and NULL came back as %v and %v (%v)", id, some, none, err)
	}
	if err := pool.QueryRow(t.Context(), "SELECT NULL::uuid").Scan(&back); err == nil {
		t.Errorf("NULL came back as %s", back)
	}
}
