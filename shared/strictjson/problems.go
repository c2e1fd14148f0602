package strictjson

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/jobweaver/jobweaver/shared/apierror"
)

// MaxProblems is how many problems one answer names.
const MaxProblems = 20

// Problems collects what is wrong with a document, at most MaxProblems of it.
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

// Full reports whether no further problem is noted.
func (p *Problems) Full() bool { return len(*p) >= MaxProblems }

// Err returns the problems as an *apierror.Error; nil: there are none. The document's name stands in its message.
func (p Problems) Err(document string) error {
	if len(p) == 0 {
		return nil
	}
	return &apierror.Error{Code: apierror.InvalidJobRequest,
		Message: "invalid " + document + ": " + p.Message("the body"), Details: p}
}

// Message describes the first problem and counts the others. A problem with the whole document is one of root; root is
// empty where the name of the document stands before the message.
func (p Problems) Message(root string) string {
	more := ""
	if len(p) > 1 {
		more = fmt.Sprintf(" (and %d more)", len(p)-1)
	}
	return strings.TrimPrefix(cmp.Or(p[0].Path, root)+" "+p[0].Message+more, " ")
}
