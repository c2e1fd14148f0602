package migrations_test

import (
	"maps"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/jobweaver/jobweaver/migrations"
	"github.com/jobweaver/jobweaver/shared/pgtest"
)

// rights are the rights of a role by object, for example "SELECT jobs", with the columns; none for an object without
// columns, or for a right to the whole table.
type rights map[string][]string

func (r rights) add(others rights) {
	for right, columns := range others {
		r[right] = slices.Concat(r[right], columns)
		slices.Sort(r[right])
	}
}

// reader finds out from the server itself which rights a statement needs.
type reader struct {
	*pgx.Conn
	notices strings.Builder
	columns map[string]map[string]string // by a table's oid, by attnum; "" is the table's name
	named   map[string]string            // our own functions by oid
	defined map[string]string            // the definitions of those in SQL, by name
	// checks are, by a table, the functions that a CHECK or an index calls at each write, and by a function those that it
	// calls itself.
	checks map[string][]string
}

func TestRolesHaveExactlyTheRightsThatTheirStatementsNeed(t *testing.T) {
	t.Parallel()
	for store, set := range map[string]migrations.Set{
		"apidb": migrations.API, "schedulerdb": migrations.Scheduler, "workerdb": migrations.Worker,
	} {
		r := newReader(t, set)
		for _, function := range set.Functions {
			needed := rights{}
			for name, sql := range statementsOf(t, function, store) {
				r.learn(t, name, sql, needed)
			}
			needed.add(kept[function])
			r.compare(t, set, function, needed)
		}
	}
}

// keptFor is the commit of the previous release, whose functions run on today's roles during an upgrade and after a
// rollback.
const keptFor = ""

// kept has the rights, by function, that only the previous release needs, each with the reason. docs/upgrade.md
// promises them until that release is no longer the previous one, and lists the exceptions.
var kept = map[string]rights{}

func TestRightsAreKeptForThePreviousReleaseOnly(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../local/suites/upgrade/OLD_COMMIT")
	if err != nil {
		t.Fatal(err)
	}
	if len(kept) > 0 && (keptFor == "" || !strings.Contains(string(text), keptFor)) {
		t.Errorf("%s is not the previous release any more: remove the rights in kept here and from roles/*.sql", keptFor)
	}
}

func newReader(t *testing.T, set migrations.Set) *reader {
	t.Helper()
	cfg, err := pgx.ParseConfig(pgtest.Database(t, set))
	if err != nil {
		t.Fatal(err)
	}
	r := &reader{columns: map[string]map[string]string{}, named: map[string]string{}, defined: map[string]string{}, checks: map[string][]string{}}
	cfg.OnNotice = func(_ *pgconn.PgConn, n *pgconn.Notice) { r.notices.WriteString(n.Detail) }
	if r.Conn, err = pgx.ConnectConfig(t.Context(), cfg); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.Close(t.Context()) })
	r.lookUp(t)
	// From here on the server reports how it understands each statement.
	const events = "set debug_print_rewritten = on; set debug_pretty_print = off; set client_min_messages = log"
	if _, err := r.Exec(t.Context(), events); err != nil {
		t.Fatal(err)
	}
	return r
}

// lookUp reads the tables, columns and functions of the database.
func (r *reader) lookUp(t *testing.T) {
	t.Helper()
	rows, _ := r.Query(t.Context(), `
		select attrelid::text, attnum::text, relname::text, attname::text
		from pg_attribute join pg_class on attrelid = pg_class.oid
		where relnamespace = 'public'::regnamespace and attnum > 0 and not attisdropped
		union all
		select oid::text, '', proname, '' from pg_proc where pronamespace = 'public'::regnamespace
		union all
		select 'defined', pg_get_functiondef(oid), proname, '' from pg_proc
		where pronamespace = 'public'::regnamespace and prolang = (select oid from pg_language where lanname = 'sql') and not prosecdef
		union all
		select 'asks', coalesce(conrelid, indrelid)::regclass::text, proname, ''
		from pg_depend
			join pg_proc on refclassid = 'pg_proc'::regclass and refobjid = pg_proc.oid
			left join pg_constraint on classid = 'pg_constraint'::regclass and objid = pg_constraint.oid
			left join pg_index on classid = 'pg_class'::regclass and objid = indexrelid
		where pronamespace = 'public'::regnamespace and coalesce(conrelid, indrelid) is not null
		union all
		select 'asks', caller.proname, called.proname, ''
		from pg_depend
			join pg_proc called on refclassid = 'pg_proc'::regclass and refobjid = called.oid
			join pg_proc caller on classid = 'pg_proc'::regclass and objid = caller.oid
		where called.pronamespace = 'public'::regnamespace`)
	var id, number, name, column string
	_, err := pgx.ForEachRow(rows, []any{&id, &number, &name, &column}, func() error {
		switch {
		case id == "asks":
			r.checks[number] = append(r.checks[number], name)
		case id == "defined":
			r.defined[name] = number
		case column == "":
			r.named[id] = name
		default:
			if r.columns[id] == nil {
				r.columns[id] = map[string]string{"": name}
			}
			r.columns[id][number] = column
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

var (
	called = regexp.MustCompile(`:funcid (\d+)`)
	entry  = regexp.MustCompile(`RTEPERMISSIONINFO :relid (\d+) :inh \w+ :requiredPerms (\d+) :checkAsUser (\d+) ` +
		`:selectedCols \( ?b([\d ]*)\) :insertedCols \( ?b([\d ]*)\) :updatedCols \( ?b([\d ]*)\)`)
	next = regexp.MustCompile(`nextval\('(\w+)'\)`)
)

// learn adds the rights that a statement needs.
func (r *reader) learn(t *testing.T, name, sql string, needed rights) {
	t.Helper()
	r.notices.Reset()
	ask := func() (err error) { _, err = r.Prepare(t.Context(), "", sql); return err }
	if strings.HasPrefix(sql, "CREATE OR REPLACE FUNCTION ") {
		ask = func() (err error) { _, err = r.Exec(t.Context(), sql); return err }
	}
	if err := ask(); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	notices := strings.Join(strings.Fields(r.notices.String()), " ") // the server breaks lines
	found := entry.FindAllStringSubmatch(notices, -1)
	if len(found) != strings.Count(notices, "RTEPERMISSIONINFO") {
		t.Fatalf("%s: the test does not understand %s", name, notices)
	}
	for _, match := range found {
		if match[3] != "0" {
			continue // a view reads its tables by the rights of its owner
		}
		bits, _ := strconv.Atoi(match[2])
		for i, kind := range []struct{ name, columns string }{
			{"INSERT", match[5]}, {"SELECT", match[4]}, {"UPDATE", match[6]}, {"DELETE", ""},
		} {
			if bits&(1<<i) != 0 { // ACL_INSERT, ACL_SELECT …
				r.add(match[1], kind.name, kind.columns, needed)
			}
		}
	}
	for _, match := range called.FindAllStringSubmatch(notices, -1) {
		if function, ours := r.named[match[1]]; ours {
			for _, name := range append(r.checks[function], function) {
				needed["EXECUTE "+name] = nil
			}
			if definition := r.defined[function]; definition != "" {
				r.learn(t, function, definition, needed) // it runs by the rights of its caller
			}
		}
	}
	for _, match := range next.FindAllStringSubmatch(sql, -1) {
		needed["USAGE "+match[1]] = nil
	}
}

func (r *reader) add(table, kind, bits string, needed rights) {
	columns := r.columns[table]
	if columns == nil {
		return // one of the server's own tables
	}
	right := kind + " " + columns[""]
	if kind == "INSERT" || kind == "UPDATE" {
		for _, function := range r.checks[columns[""]] {
			needed["EXECUTE "+function] = nil
		}
	}
	have := needed[right]
	for _, bit := range strings.Fields(bits) {
		n, _ := strconv.Atoi(bit)
		have = append(have, columns[strconv.Itoa(n-7)]) // FirstLowInvalidHeapAttributeNumber
	}
	slices.Sort(have)
	needed[right] = slices.Compact(have)
}

// compare compares a role's rights with those that its statements need. A right to a whole table stands for all its
// columns.
func (r *reader) compare(t *testing.T, set migrations.Set, function string, needed rights) {
	t.Helper()
	granted, err := migrations.Granted(t.Context(), r.Conn, migrations.Role(function))
	if err != nil {
		t.Fatal(err)
	}
	for right, columns := range needed {
		have, ok := granted[right]
		switch kind, thing, _ := strings.Cut(right, " "); {
		case !ok:
			t.Errorf("roles/%s.sql: %s lacks %s on %s (%s)", set.Name, function, kind, thing, strings.Join(columns, ", "))
		case have != nil && !slices.Equal(have, columns) && len(columns) > 0:
			t.Errorf("roles/%s.sql: %s has %s on %s of the columns\n\t%s\nand needs\n\t%s", set.Name, function, kind, thing,
				strings.Join(have, ", "), strings.Join(columns, ", "))
		}
	}
	for _, right := range slices.Sorted(maps.Keys(granted)) {
		if _, ok := needed[right]; !ok {
			kind, thing, _ := strings.Cut(right, " ")
			t.Errorf("roles/%s.sql: %s needs no %s on %s; if the previous release does, add the right to kept",
				set.Name, function, kind, thing)
		}
	}
}
