// Prose rejects the words of words.tsv in docs, comments, messages and names, in the files that git knows. Its
// arguments are folders, relative to the top one. `prose draw docs|code N SEED` prints N sentences of the docs or
// comments of the code, to be read by a person.
package main

import (
	"bytes"
	_ "embed"
	"fmt"
	"log"
	"os"
	"os/exec"
	"strconv"
	"strings"
)

//go:embed words.tsv
var list string

func main() {
	log.SetFlags(0)
	if err := os.Chdir(strings.TrimSpace(git("rev-parse", "--show-toplevel"))); err != nil {
		log.Fatal(err)
	}
	if len(os.Args) == 5 && os.Args[1] == "draw" {
		n, _ := strconv.Atoi(os.Args[3])
		seed, _ := strconv.ParseUint(os.Args[4], 10, 64)
		draw(os.Args[2], n, seed)
		return
	}
	rules, err := readRules(strings.NewReader(list))
	if err != nil {
		log.Fatal(err)
	}
	found := 0
	for _, path := range files(os.Args[1:]) {
		if strings.HasPrefix(path, ".ci/prose/") {
			continue // the rules and their tests
		}
		for _, f := range check(path, rules) {
			fmt.Println(f)
			found++
		}
	}
	if found > 0 {
		log.Fatalf("%d places use words that docs/glossary.md avoids: see .ci/prose/words.tsv", found)
	}
}

func files(folders []string) []string {
	out := git(append([]string{"ls-files", "-z", "--cached", "--others", "--exclude-standard", "--"}, folders...)...)
	return strings.Split(strings.TrimRight(out, "\x00"), "\x00")
}

func git(args ...string) string {
	out, err := exec.Command("git", args...).Output()
	if err != nil {
		log.Fatalf("git %s: %v", args[0], err)
	}
	return string(out)
}

func check(path string, rules rules) []string {
	read := reader(path)
	if read == nil {
		return nil
	}
	source, err := os.ReadFile(path)
	if err != nil || generated(path, source) || bytes.IndexByte(source, 0) >= 0 {
		return nil
	}
	var found []string
	for _, l := range read(source) {
		for _, b := range rules.check(l.text) {
			found = append(found, fmt.Sprintf("%s:%d: %q: %s", path, l.number, b.words, b.instead))
		}
	}
	return found
}
