package main

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"log"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// passage is a sentence of a page, or a comment.
type passage struct {
	path string
	line int
	text string
}

// draw prints n sentences of the docs, or n comments of the Go code, chosen by a seed.
func draw(kind string, n int, seed uint64) {
	var all []passage
	for _, path := range files(nil) {
		source, err := os.ReadFile(path)
		if err != nil || generated(path, source) {
			continue
		}
		switch {
		case kind == "docs" && filepath.Ext(path) == ".md":
			all = append(all, sentences(path, source)...)
		case kind == "code" && filepath.Ext(path) == ".go":
			all = append(all, comments(path, source)...)
		}
	}
	random := rand.New(rand.NewPCG(seed, 0))
	random.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	drawn := all[:min(n, len(all))]
	slices.SortFunc(drawn, func(a, b passage) int { return cmp.Or(cmp.Compare(a.path, b.path), a.line-b.line) })
	for i, p := range drawn {
		fmt.Printf("%3d %s:%d\n    %s\n", i+1, p.path, p.line, p.text)
	}
}

var (
	sentenceEnd = regexp.MustCompile(`[.!?:]\s+`)
	listMark    = regexp.MustCompile(`^\s*([-*]|\d+\.|>)\s+`)
)

// sentences returns those of paragraphs and lists: without headings, tables, code blocks and HTML comments.
func sentences(path string, source []byte) []passage {
	var all []passage
	var paragraph strings.Builder
	begin := 0
	end := func() {
		for _, text := range sentenceEnd.Split(paragraph.String(), -1) {
			if len(strings.Fields(text)) > 3 {
				all = append(all, passage{path, begin, text})
			}
		}
		paragraph.Reset()
	}
	block := false
	for _, l := range whole(source) {
		text := strings.TrimSpace(l.text)
		fence := strings.HasPrefix(text, "```")
		if fence {
			block = !block
		}
		if fence || block || text == "" || strings.HasPrefix(l.text, "    ") || strings.ContainsAny(text[:1], "#|<") {
			end()
			continue
		}
		if listMark.MatchString(l.text) {
			end()
			text = listMark.ReplaceAllString(l.text, "")
		}
		if paragraph.Len() == 0 {
			begin = l.number
		}
		paragraph.WriteString(text + " ")
	}
	end()
	return all
}

// comments returns each comment as a whole, without those that are for a tool.
func comments(path string, source []byte) []passage {
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, path, source, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		log.Fatal(err)
	}
	var all []passage
	for _, group := range file.Comments {
		if text := oneLine(group); len(strings.Fields(text)) > 3 {
			all = append(all, passage{path, set.Position(group.Pos()).Line, text})
		}
	}
	return all
}

func oneLine(group *ast.CommentGroup) string { return strings.Join(strings.Fields(group.Text()), " ") }
