package jobspec

import (
	"errors"
	"time"

	"github.com/jobweaver/jobweaver/shared/retrypolicy"
	"github.com/jobweaver/jobweaver/shared/strictjson"
)

// allTypes is the key of what holds for each job type, where the type's own entry is silent too.
const allTypes = "*"

const retryPolicies = "RETRY_POLICIES: " // the setting

// TypeDefaults is what an installation has instead of the common defaults, by job type.
type TypeDefaults map[string]typeDefaults

type typeDefaults struct {
	retryPolicy   *retrypolicy.Policy // nil: the common one
	maxRetryCount int
	timeout       time.Duration
	silent        Silent // where the common default holds
}

// ParseTypeDefaults reads a JSON object with an object for each job type, or for all as "*", of which maxRetryCount,
// retryPolicy and timeoutMs are as in a request. An empty text has none. Its errors begin with the setting's name.
func ParseTypeDefaults(text string) (TypeDefaults, error) {
	if text == "" {
		return nil, nil
	}
	if p := strictjson.Scan([]byte(text), ""); p != nil {
		return nil, errors.New(retryPolicies + p.Message(""))
	}
	defaults := TypeDefaults{}
	r := newReader([]byte(text), "")
	r.Object(func() {
		jobType := string(r.Name)
		wrong := WrongJobType(jobType)
		defaults[jobType] = r.typeDefaults()
		if jobType != allTypes {
			r.Note(wrong)
		}
	})
	if p := r.Close(); len(p) > 0 {
		return nil, errors.New(retryPolicies + p.Message(""))
	}
	return defaults, nil
}

func (r reader) typeDefaults() typeDefaults {
	d := typeDefaults{silent: Silent{MaxRetryCount: true, RetryPolicy: true, Timeout: true}}
	r.Object(func() {
		switch string(r.Name) {
		case "maxRetryCount":
			d.maxRetryCount, d.silent.MaxRetryCount = int(r.Integer(0, MaxRetryCount)), false
		case "retryPolicy":
			d.retryPolicy, d.silent.RetryPolicy = r.policy(), false
		case "timeoutMs":
			d.timeout, d.silent.Timeout = r.Millis(time.Millisecond, MaxTimeout), false
		default:
			r.Unknown()
		}
	})
	return d
}

// FillIn fills in what a request is silent about, from the entry of its type, and where that is silent from the one of
// all types. Canonical is of the request before: the same request is the same under other settings.
func (t TypeDefaults) FillIn(req *Request) {
	for _, key := range []string{allTypes, req.JobType} {
		if d, ok := t[key]; ok {
			d.fillIn(req)
		}
	}
}

func (d typeDefaults) fillIn(req *Request) {
	if req.Silent.MaxRetryCount && !d.silent.MaxRetryCount {
		req.MaxRetryCount = d.maxRetryCount
	}
	if req.Silent.RetryPolicy && !d.silent.RetryPolicy {
		req.RetryPolicy = d.retryPolicy
	}
	if req.Silent.Timeout && !d.silent.Timeout {
		req.TimeoutMs = d.timeout.Milliseconds()
	}
}
