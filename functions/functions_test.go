// Package functions_test checks that a new function is named in all the places that must name it, and prints what to add
// where it is not: CONTRIBUTING.md, "Adding a function", goes through them. The folders here are the list of
// functions, and go generate ./local/functionrules writes everything that follows from it alone.
package functions_test

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/jobweaver/jobweaver/functions"
)

// withoutDatabase lists the functions that use no database of the installation and have no role in one.
var withoutDatabase = []string{"relay"}

// place is where each function must be named. In files and text, NAME is the function's name.
type place struct {
	files string // a pattern below the root; ** matches any folders. One matching file must have the text
	text  string // a regular expression; empty: the file must exist
	why   string
	role  bool   // required only of functions with a role in a database
	add   string // the lines to add; empty: they differ from function to function
}

const generate = "go generate ./local/functionrules"

var places = []place{
	{"functions/NAME/*.go", `(?m)^const Name = "NAME"$`, "the package, and the name that events and consumer groups go by", false, ""},
	{"functions/functions.go", `NAME\.Name, NAME\.Wire\}`, "how it is wired, in jobweaver dev and the suites too", false, "{NAME.Name, NAME.Wire},"},
	{"functions/NAME/cmd/main.go", `funchost\.Main(WithoutDatabase)?\(NAME\.Name, NAME\.Wire\)`, "its process, which is wired as everywhere", false, ""},
	{"functions/NAME/*_test.go", `func Test`, "its tests", false, ""},
	{".golangci.yml", `files: \["\*\*/functions/NAME/\*\*"\]`, "what it may import", false, generate},
	{".golangci.yml", `- "!\*\*/functions/NAME/\*\*"`, "that it has such a rule", false, generate},
	{"migrations/migrations.go", `set\(.*"NAME"`, "which database it works on: by it jobweaver migrate --roles makes its role", true, `"NAME" in the set of its database`},
	{"migrations/roles/*.sql", `\bjobweaver_NAME\b`, "what it may do there", true, ""},
	{"knative/**/NAME.yaml", `app\.kubernetes\.io/component: NAME\b`, "its manifest", false, ""},
	{"knative/**/NAME.yaml", `args: \[function, NAME\]`, "that its manifest runs it", false, "args: [function, NAME]"},
	{"knative/**/kustomization.yaml", `(?m)^ *- (.*/)?NAME\.yaml$`, "that its manifest is applied", false, "  - NAME.yaml"},
	{"knative/common/accounts.yaml", `name: NAME\b`, "its service account", false, generate},
	{"knative/common/jobs.yaml", `jobweaver-database-NAME\b`, "the password that the job of the migrations gives its role", true, generate},
	{"infra/kubernetes/postgres/roles.yaml", `jobweaver-database-NAME\b`, "its role in the database cluster", true, generate},
	{"knative/components/cloudnativepg/kustomization.yaml", `jobweaver-database-NAME\b`, "its address and certificate", true, generate},
	{".ci/manifests/code.go", `functions/NAME"`, "that its manifest is held against its code", false, "{NAME.New(nil).Host(), nil},"},
	{"docker-compose.yml", `(?m)^  [a-z]+: # .*\bNAME\b|command: \[function, NAME\]`, "its service", false, ""},
	{"docs/design.md", "(?m)^\\| `NAME` \\|", "what it does", false, "| `NAME` | … |"},
	{"README.md", `\bNAME\b`, "its part in the life of a job", false, ""},
}

// TestEachFunctionIsNamedWhereverItMustBe finds what was forgotten for a new folder in functions/.
func TestEachFunctionIsNamedWhereverItMustBe(t *testing.T) {
	t.Parallel()
	names := folders(t)
	if len(names) < 12 {
		t.Fatalf("only %d functions: %v", len(names), names)
	}
	for _, name := range names {
		for _, p := range places {
			if p.role && slices.Contains(withoutDatabase, name) {
				continue
			}
			if missing := p.lacks(t, name); missing != "" {
				t.Error(missing)
			}
		}
	}
}

// TestAFunctionThatIsNowhereIsMissedEverywhere: each of the checks can fail.
func TestAFunctionThatIsNowhereIsMissedEverywhere(t *testing.T) {
	t.Parallel()
	for _, p := range places {
		if p.lacks(t, "nowhere") == "" {
			t.Errorf("%s names a function that does not exist", p.files)
		}
	}
}

// TestNoFunctionIsNamedThatIsGone checks the lists from which others are generated.
func TestNoFunctionIsNamedThatIsGone(t *testing.T) {
	t.Parallel()
	names := append(folders(t), "migrate") // the databases' owner
	for file, pattern := range map[string]string{
		"migrations/roles/*.sql":               `\bjobweaver_([a-z]+)\b`,
		"knative/**/*.yaml":                    `args: \[function, ([a-z]+)\]`,
		"infra/kubernetes/postgres/roles.yaml": `jobweaver-database-([a-z]+)\b`,
	} {
		for path, text := range read(t, file) {
			for _, found := range regexp.MustCompile(pattern).FindAllStringSubmatch(text, -1) {
				if !slices.Contains(names, found[1]) {
					t.Errorf("%s names %s, and there is no functions/%s", path, found[0], found[1])
				}
			}
		}
	}
}

// TestEachFunctionOfTheListIsBuiltByItsOwnPackage: a copied line of the list could build another function.
func TestEachFunctionOfTheListIsBuiltByItsOwnPackage(t *testing.T) {
	t.Parallel()
	var names []string
	for _, f := range functions.All {
		names = append(names, f.Name)
		built := runtime.FuncForPC(reflect.ValueOf(functions.Find(f.Name)).Pointer()).Name()
		if want := "github.com/jobweaver/jobweaver/functions/" + f.Name + ".Wire"; built != want {
			t.Errorf("%s is built by %s", f.Name, built)
		}
	}
	if slices.Sort(names); !slices.Equal(names, folders(t)) {
		t.Errorf("the list has %v, the folders %v", names, folders(t))
	}
	if functions.Find("nowhere") != nil {
		t.Error("a function that does not exist was found")
	}
}

func folders(t *testing.T) (names []string) {
	t.Helper()
	entries, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if e.IsDir() {
			names = append(names, e.Name())
		}
	}
	return names
}

// lacks returns what a function lacks in this place; empty: nothing.
func (p place) lacks(t *testing.T, name string) string {
	t.Helper()
	pattern := regexp.MustCompile(strings.ReplaceAll(p.text, "NAME", regexp.QuoteMeta(name)))
	for _, text := range read(t, strings.ReplaceAll(p.files, "NAME", name)) {
		if pattern.MatchString(text) {
			return ""
		}
	}
	add := ""
	if p.add != "" {
		add = "\n" + strings.ReplaceAll(p.add, "NAME", name)
	}
	return fmt.Sprintf("function %s: %s lacks it: %s (CONTRIBUTING.md, Adding a function)%s", name, p.files, p.why, add)
}

// read returns the files that match a pattern below the root, by their paths.
func read(t *testing.T, pattern string) map[string]string {
	t.Helper()
	top, rest, deep := strings.Cut(pattern, "**/")
	patterns := []string{pattern}
	if deep {
		patterns = nil
		for range 5 {
			patterns = append(patterns, top+strings.Repeat("*/", len(patterns))+rest)
		}
	}
	files := map[string]string{}
	for _, pattern := range patterns {
		paths, err := filepath.Glob(filepath.Join("..", pattern))
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range paths {
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			files[path] = string(text)
		}
	}
	return files
}
