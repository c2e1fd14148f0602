package interplay

import (
	"fmt"
	"slices"
	"strings"
)

// Script returns what a program asked as a curl script, with variables in place of the ids that it was given. The
// witness of the program has to run for it; INTERPLAY_PROGRAM runs a program with everything that belongs to it.
func Script(r *Record) string {
	var text strings.Builder
	text.WriteString("#!/bin/sh\n# The requests of a program, in the order of their answers; U is the gateway, KEY a key of the owner, and\n# ADMIN one of the installation.\n")
	ids := map[string]string{} // variables by ids
	variable := func(name string) string {
		return strings.NewReplacer(".", "_", " ", "_", "+", "_").Replace(name)
	}
	for name, s := range r.Specs {
		if s.ID != "" && ids[s.ID] == "" {
			ids[s.ID] = variable(name)
		}
	}
	for name, b := range r.Batches {
		ids[b.BatchID] = variable(name)
	}
	for name, f := range r.Flows {
		ids[f.FlowID] = variable(name)
	}
	for name, o := range r.Operations {
		ids[o.OperationID] = variable(name)
	}
	names := strings.NewReplacer(r.Owner, "me", r.Other, "other", r.Base, "both")
	asked := slices.Clone(r.Asked)
	slices.SortStableFunc(asked, func(a, b *Asked) int { return a.Sent.Compare(b.Sent) })
	for _, a := range asked {
		line := fmt.Sprintf("curl -sX %s \"$U%s\" -H \"X-Api-Key: $%s\"", a.Method, a.Path, map[bool]string{true: "ADMIN", false: "KEY"}[a.Admin])
		if a.Hooked {
			line += " -H 'X-Owner-Id: " + r.Hook + "'"
		}
		if a.Body != nil {
			kind := a.Type
			if kind == "" {
				kind = "application/json"
			}
			line += fmt.Sprintf(" -H 'Content-Type: %s' -d '%s'", kind, a.Body)
		}
		for id, name := range ids {
			line = strings.ReplaceAll(line, id, "'$"+name+"'")
		}
		line = names.Replace(line)
		made := ""
		for id, name := range ids {
			if strings.Contains(string(a.Answer), id) && !strings.Contains(line, "$"+name) {
				made += " " + name
			}
		}
		fmt.Fprintf(&text, "\n# step %d, at %.3f s, answered %d after %.3f s", a.Step, a.Sent.Sub(r.Began).Seconds(), a.Status, a.At.Sub(a.Sent).Seconds())
		if made != "" {
			fmt.Fprintf(&text, "; its answer has%s", made)
		}
		fmt.Fprintf(&text, "\n%s\n", line)
	}
	return text.String()
}
