package strictjson

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/jobweaver/jobweaver/shared/apierror"
)

// MaxProblems is the most problems that one answer names.
const MaxProblems = 20

// Problems collects the problems of a document, at most MaxProblems.
type Problems []apierror.Detail

// Add notes a problem with the value at a path.
func (p *Problems) Add(path, message string) {
	if !p.Full() {
		*p = append(*p, apierror.Detail{Path: path, Message: message})
	}
}

// AddAll notes more problems.
func (p *Problems) AddAll(more Problems) {
	for _, d := range more {
		p.Add(d.Path, d.Message)
	}
}

// Full reports whether there are MaxProblems problems, so that no further ones are noted.
func (p *Problems) Full() bool { return len(*p) >= MaxProblems }

// Err returns the problems as an *apierror.Error; nil: there are none. Its message contains the document's name.
func (p Problems) Err(document string) error {
	if len(p) == 0 {
		return nil
	}
	return &apierror.Error{Code: apierror.InvalidJobRequest,
		Message: "invalid " + document + ": " + p.Message("the body"), Details: p}
}

// Message describes the first problem and counts the others. It calls the whole document root; root is empty if the
// caller writes the document's name before the message.
func (p Problems) Message(root string) string {
	more := ""
	if len(p) > 1 {
		more = fmt.Sprintf(" (and %d more)", len(p)-1)
	}
	return strings.TrimPrefix(cmp.Or(p[0].Path, root)+" "+p[0].Message+more, " ")
}
