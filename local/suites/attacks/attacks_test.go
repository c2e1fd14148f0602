package attacks

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

const root = "../../.."

// named matches a test as SECURITY.md names it: `folder.TestName`, with the folder below the root.
var named = regexp.MustCompile("`([a-z0-9/]+)\\.((?:Test|Fuzz)[A-Za-z0-9]+)`")

func TestEachAttackIsTriedByATestThatIsNotSkipped(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(filepath.Join(root, "SECURITY.md"))
	if err != nil {
		t.Fatal(err)
	}
	tests, attacks := map[string]map[string]*ast.FuncDecl{}, 0
	for n, line := range strings.Split(string(text), "\n") {
		found := named.FindAllStringSubmatch(line, -1)
		inTable := strings.HasPrefix(line, "| ") && !strings.HasPrefix(line, "| attack")
		if inTable && len(found) == 0 {
			t.Errorf("line %d names no test: %s", n+1, line)
		}
		if inTable {
			attacks++
		}
		for _, name := range found {
			folder, test := name[1], name[2]
			if tests[folder] == nil {
				tests[folder] = testsOf(t, folder)
			}
			switch f := tests[folder][test]; {
			case f == nil:
				t.Errorf("line %d: there is no %s in %s", n+1, test, folder)
			case skips(f):
				t.Errorf("line %d: %s in %s can be skipped", n+1, test, folder)
			}
		}
	}
	if attacks < 50 {
		t.Errorf("there are only %d attacks", attacks)
	}
}

func testsOf(t *testing.T, folder string) map[string]*ast.FuncDecl {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(root, folder, "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	tests := map[string]*ast.FuncDecl{}
	for _, file := range files {
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, decl := range parsed.Decls {
			if f, ok := decl.(*ast.FuncDecl); ok && f.Recv == nil {
				tests[f.Name.Name] = f
			}
		}
	}
	return tests
}

// skips reports whether a test can skip itself. Under -short it may, since it also runs without -short.
func skips(f *ast.FuncDecl) (found bool) {
	ast.Inspect(f.Body, func(n ast.Node) bool {
		if branch, ok := n.(*ast.IfStmt); ok && calls(branch.Cond, "Short") {
			return false
		}
		if e, ok := n.(ast.Expr); ok && (calls(e, "Skip") || calls(e, "Skipf") || calls(e, "SkipNow")) {
			found = true
		}
		return !found
	})
	return found
}

func calls(e ast.Expr, method string) bool {
	call, ok := e.(*ast.CallExpr)
	if !ok {
		return false
	}
	selector, ok := call.Fun.(*ast.SelectorExpr)
	return ok && selector.Sel.Name == method
}
