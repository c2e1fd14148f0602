package migrations_test

import (
	"context"
	"go/ast"
	"go/token"
	"go/types"
	"io/fs"
	"path"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
	"golang.org/x/tools/go/packages"

	"github.com/jobweaver/jobweaver/migrations"
	"github.com/jobweaver/jobweaver/shared/apidb/joblist"
)

const module = "github.com/jobweaver/jobweaver/"

// program is the part of JobWeaver's Go code that is analysed.
type program struct {
	uses    map[string][]string          // by a function's full name: the functions that it names
	parts   map[string][]string          // by a package: its functions
	queries map[string]map[string]string // by a store: SQL by the full name of the method that sqlc has made
}

var read = sync.OnceValues(func() (*program, error) {
	cfg := &packages.Config{
		Mode: packages.NeedName | packages.NeedImports | packages.NeedTypes | packages.NeedSyntax | packages.NeedTypesInfo,
		Dir:  "..",
	}
	loaded, err := packages.Load(cfg, "./functions/...", "./shared/...")
	if err != nil {
		return nil, err
	}
	p := &program{uses: map[string][]string{}, parts: map[string][]string{}, queries: map[string]map[string]string{}}
	p.queries["apidb"] = map[string]string{}
	for i, method := range []string{"Newest", "Oldest"} { // the statements that are made in Go
		p.queries["apidb"]["("+module+"shared/apidb/joblist.List)."+method], _, err = pgx.NamedArgs{}.RewriteQuery(
			context.Background(), nil, joblist.Every()[i], nil)
		if err != nil {
			return nil, err
		}
	}
	for _, pkg := range loaded {
		for _, problem := range pkg.Errors {
			return nil, problem
		}
		p.add(pkg)
	}
	return p, nil
})

func (p *program) add(pkg *packages.Package) {
	store, generated := strings.CutSuffix(pkg.PkgPath, "/internal/gen")
	for _, file := range pkg.Syntax {
		for _, decl := range file.Decls {
			switch decl := decl.(type) {
			case *ast.FuncDecl:
				f, _ := pkg.TypesInfo.Defs[decl.Name].(*types.Func)
				p.parts[pkg.PkgPath] = append(p.parts[pkg.PkgPath], f.FullName())
				ast.Inspect(decl, func(n ast.Node) bool {
					if id, ok := n.(*ast.Ident); ok {
						switch used := pkg.TypesInfo.Uses[id].(type) {
						case *types.Func:
							p.uses[f.FullName()] = append(p.uses[f.FullName()], used.Origin().FullName())
						case *types.Const: // of a statement that is queued into a batch
							if used.Pkg() != nil {
								p.uses[f.FullName()] = append(p.uses[f.FullName()], queryOf(used.Pkg().Path(), used.Name()))
							}
						}
					}
					return true
				})
			case *ast.GenDecl:
				if generated && decl.Tok == token.CONST {
					p.addQueries(path.Base(store), pkg.PkgPath, decl)
				}
			}
		}
	}
}

func (p *program) addQueries(store, pkg string, decl *ast.GenDecl) {
	for _, spec := range decl.Specs {
		text, ok := spec.(*ast.ValueSpec).Values[0].(*ast.BasicLit)
		if !ok {
			continue
		}
		sql, err := strconv.Unquote(text.Value)
		rest, named := strings.CutPrefix(sql, "-- name: ")
		if err != nil || !named {
			continue
		}
		name, _, _ := strings.Cut(rest, " ")
		if p.queries[store] == nil {
			p.queries[store] = map[string]string{}
		}
		p.queries[store][queryOf(pkg, name)] = sql
	}
}

// queryOf returns the full name of the method that sqlc has made for a statement.
func queryOf(pkg, statement string) string { return "(*" + pkg + ".Queries)." + statement }

// statementsOf returns the SQL that the code of a function's packages can reach in a store, by statement name.
func statementsOf(t *testing.T, function, store string) map[string]string {
	t.Helper()
	p, err := read()
	if err != nil {
		t.Fatal(err)
	}
	var todo []string
	for pkg, functions := range p.parts {
		if own := module + "functions/" + function; pkg == own || strings.HasPrefix(pkg, own+"/") {
			todo = append(todo, functions...)
		}
	}
	reached, seen := map[string]string{}, map[string]bool{}
	for len(todo) > 0 {
		name := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		if seen[name] {
			continue
		}
		seen[name] = true
		todo = append(todo, p.uses[name]...)
		if sql, ok := p.queries[store][name]; ok {
			reached[name[strings.LastIndex(name, ".")+1:]] = sql
		}
	}
	if len(reached) == 0 {
		t.Fatalf("%s has no statement in %s: the test does not see what it should", function, store)
	}
	return reached
}

// later are forms of PostgreSQL 16 to 18. By docs/operations.md 15 is enough.
var later = regexp.MustCompile(`(?is)\breturning\b.*\b(old|new)\.|\b(uuidv[47]|any_value|array_(sort|reverse|shuffle|sample)|` +
	`json_(table|exists|query|value|scalar|serialize|array|arrayagg|object|objectagg)|random_normal)\s*\(|\bis\s+json\b`)

func TestPostgreSQL15HasAllForms(t *testing.T) {
	t.Parallel()
	p, err := read()
	if err != nil {
		t.Fatal(err)
	}
	checked := 0
	for _, queries := range p.queries {
		for name, sql := range queries {
			if found := later.FindString(sql); found != "" {
				t.Errorf("%s has %q", name, found)
			}
			checked++
		}
	}
	for _, set := range []migrations.Set{migrations.API, migrations.Scheduler, migrations.Worker} {
		names, err := fs.Glob(set.FS, "*.sql")
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range names {
			text, err := fs.ReadFile(set.FS, name)
			if err != nil {
				t.Fatal(err)
			}
			if found := later.FindString(string(text)); found != "" {
				t.Errorf("%s/%s has %q", set.Name, name, found)
			}
			checked++
		}
	}
	if checked < 300 {
		t.Errorf("only %d statements and migrations", checked)
	}
	for _, sql := range []string{
		"update t set a = 1\nreturning t.id, new.a & ~old.a", "select uuidv7()", "select json_value(a, '$.b')", "where a is json",
	} {
		if !later.MatchString(sql) {
			t.Errorf("%q was not found", sql)
		}
	}
}
