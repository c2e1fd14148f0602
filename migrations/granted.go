package migrations

import (
	"context"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
)

// Rights are those of a role by object, such as "SELECT jobs", with the columns; none for a right to the whole object.
type Rights map[string][]string

// add adds a right to a column, or to the whole object, which includes all columns.
func (r Rights) add(right, column string) {
	if have, known := r[right]; column == "" {
		r[right] = nil
	} else if !known || have != nil {
		r[right] = append(have, column)
	}
}

func (r Rights) sorted() Rights {
	for _, columns := range r {
		slices.Sort(columns)
	}
	return r
}

var (
	remark = regexp.MustCompile(`--.*`)
	grant  = regexp.MustCompile(`(?s)GRANT (.+?) ON (?:FUNCTION |SEQUENCE )?([^()]+?) TO ([^;]+);`)
	kind   = regexp.MustCompile(`(?s)([A-Z]+)\s*(?:\(([^)]*)\))?`)
)

// Rights returns what Grants gives each role.
func (s Set) Rights() map[string]Rights {
	all := map[string]Rights{}
	for _, role := range s.Roles() {
		all[role] = Rights{}
	}
	for _, match := range grant.FindAllStringSubmatch(remark.ReplaceAllString(s.Grants, ""), -1) {
		for _, role := range names(match[3]) {
			for _, object := range names(match[2]) {
				for _, k := range kind.FindAllStringSubmatch(match[1], -1) {
					right := k[1] + " " + object
					if k[2] == "" {
						all[role].add(right, "")
					}
					for _, column := range names(k[2]) {
						all[role].add(right, column)
					}
				}
			}
		}
	}
	for _, rights := range all {
		rights.sorted()
	}
	return all
}

func names(list string) []string {
	return strings.FieldsFunc(list, func(r rune) bool { return strings.ContainsRune(", \n\t", r) })
}

// Granted reads the rights of a role in the schema, including those of PUBLIC.
func Granted(ctx context.Context, conn *pgx.Conn, role string) (Rights, error) {
	rows, err := conn.Query(ctx, `
		select acl.privilege_type || ' ' || relname, ''
		from pg_class, aclexplode(relacl) as acl
		where relnamespace = current_schema()::regnamespace and acl.grantee in (0, to_regrole($1))
		union all
		select acl.privilege_type || ' ' || relname, attname
		from pg_attribute join pg_class on attrelid = pg_class.oid, aclexplode(attacl) as acl
		where relnamespace = current_schema()::regnamespace and acl.grantee in (0, to_regrole($1))
		union all
		select acl.privilege_type || ' ' || proname, ''
		from pg_proc, aclexplode(coalesce(proacl, acldefault('f', proowner))) as acl
		where pronamespace = current_schema()::regnamespace and acl.grantee in (0, to_regrole($1))
			and not exists (select from pg_depend where pg_depend.objid = pg_proc.oid and deptype = 'e')`, quoted(role))
	if err != nil {
		return nil, fmt.Errorf("read rights of %s: %w", role, err)
	}
	granted := Rights{}
	var right, column string
	if _, err := pgx.ForEachRow(rows, []any{&right, &column}, func() error {
		granted.add(right, column)
		return nil
	}); err != nil {
		return nil, fmt.Errorf("read rights of %s: %w", role, err)
	}
	return granted.sorted(), nil
}

// Against returns how rights differ from those that a role needs, in sentences without their subject.
func (r Rights) Against(needed Rights) (differences []string) {
	for _, right := range slices.Sorted(maps.Keys(needed)) {
		have, has := r[right]
		switch columns := needed[right]; {
		case !has:
			differences = append(differences, "lacks "+shown(right, columns))
		case have != nil && columns == nil:
			differences = append(differences,
				fmt.Sprintf("lacks %s beyond the columns %s", shown(right, nil), strings.Join(have, ", ")))
		case have != nil && len(without(columns, have)) > 0:
			differences = append(differences, "lacks "+shown(right, without(columns, have)))
		}
	}
	for _, right := range slices.Sorted(maps.Keys(r)) {
		columns, is := needed[right]
		switch have := r[right]; {
		case !is:
			differences = append(differences, "needs no "+shown(right, have))
		case have == nil && columns != nil:
			differences = append(differences, fmt.Sprintf("needs %s for some columns only", shown(right, nil)))
		case len(without(have, columns)) > 0 && columns != nil:
			differences = append(differences, "needs no "+shown(right, without(have, columns)))
		}
	}
	return differences
}

func without(all, some []string) []string {
	return slices.DeleteFunc(slices.Clone(all), func(one string) bool { return slices.Contains(some, one) })
}

// shown returns a right as SQL writes it.
func shown(right string, columns []string) string {
	what, object, _ := strings.Cut(right, " ")
	if len(columns) > 0 {
		what += " (" + strings.Join(columns, ", ") + ")"
	}
	return what + " on " + object
}
