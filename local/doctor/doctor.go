// Package doctor checks an installation against the checklist for production. It changes nothing, shows no secret, and
// ends within Patience whatever does not answer.
package doctor

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jobweaver/jobweaver/shared/secret"
)

// Patience is how long all checks may take together.
const Patience = 10 * time.Second

// Finding is something that an operator should change.
type Finding struct {
	Where string `json:"where"` // a database, a topic, a setting, a file
	What  string `json:"what"`
	Do    string `json:"do"`
}

// Result is what one check found.
type Result struct {
	Check    string    `json:"check"`
	Looks    string    `json:"looks"` // what it checks
	Findings []Finding `json:"findings"`
	Unseen   []string  `json:"unseen"` // what it could not see, and why
	Facts    []string  `json:"facts"`  // what it saw

	Partial bool `json:"partial"` // a database does not answer, so it did not look there
}

// Check looks at one thing. A new one is an entry in Checks, a line of the checklist, and a test that plants its fault.
type Check struct {
	Name  string
	Looks string
	run   func(ctx context.Context, l *look)
}

// Checks are all checks, in the order in which an operator fixes what they find.
var Checks = []Check{
	{"settings", "every setting can be read, and none is misspelled", settings},
	{"database", "the three databases answer, and accept writes", answers},
	{"clocks", "this machine and the servers of the databases have the same time", clocks},
	{"versions", "PostgreSQL, the brokers and the migrations fit this version of jobweaver", versions},
	{"postgres", "PostgreSQL keeps what it has committed, cleans up, and has connections left", postgres},
	{"pooler", "a connection pooler leads to the server beside it, and its sessions have their settings", poolers},
	{"rights", "each role of the databases has the rights that it needs, and no others", rights},
	{"topics", "the brokers answer, and have all topics with what they need", topics},
	{"secrets", "secrets are there, long enough, in files of their own, and the same in all functions", secrets},
	{"tls", "no connection to another machine is in plain text, and clients need a key", plain},
	{"certificates", "no certificate ends within two weeks", certificates},
	{"disk", "the disk has space, and no replication slot keeps WAL back", disk},
	{"vacuum", "no transaction stays open, and autovacuum follows", vacuum},
	{"backup", "the log is archived, as far as PostgreSQL does that itself", backup},
}

// look is one run of the checks.
type look struct {
	*Installation
	databases []*database
	brokers   *brokers
	result    *Result
}

// Run runs all checks but those whose names skip has.
func Run(ctx context.Context, installation *Installation, skip map[string]bool) []Result {
	ctx, cancel := context.WithTimeout(ctx, Patience)
	defer cancel()
	l := &look{Installation: installation, brokers: ask(ctx, installation)}
	l.databases = open(ctx, installation)
	defer func() {
		for _, d := range l.databases {
			d.close()
		}
	}()
	var results []Result
	for _, check := range Checks {
		if skip[check.Name] {
			continue
		}
		l.result = &Result{
			Check: check.Name, Looks: check.Looks, Findings: []Finding{}, Unseen: []string{}, Facts: []string{},
		}
		check.run(ctx, l)
		results = append(results, *l.result)
	}
	return results
}

// find notes something to change, once.
func (l *look) find(where, what, do string) {
	found := Finding{l.hide(where), l.hide(what), l.hide(do)}
	for _, earlier := range l.result.Findings {
		if earlier == found {
			return
		}
	}
	l.result.Findings = append(l.result.Findings, found)
}

func (l *look) unseen(format string, args ...any) {
	if text := l.hide(fmt.Sprintf(format, args...)); !slices.Contains(l.result.Unseen, text) {
		l.result.Unseen = append(l.result.Unseen, text)
	}
}

func (l *look) fact(format string, args ...any) {
	l.result.Facts = append(l.result.Facts, l.hide(fmt.Sprintf(format, args...)))
}

// hide removes secrets from a text: an error of a library may have one.
func (l *look) hide(text string) string {
	for _, hidden := range l.secrets() {
		text = strings.ReplaceAll(text, hidden, fmt.Sprint(secret.Of(hidden)))
	}
	return text
}
