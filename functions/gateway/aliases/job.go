package aliases

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/gin-gonic/gin"

	"github.com/jobweaver/jobweaver/shared/apierror"
	"github.com/jobweaver/jobweaver/shared/jobspec"
	"github.com/jobweaver/jobweaver/shared/strictjson"
)

// job is the body of a request to an alias, which gets the names of this API.
type job struct {
	members map[string]json.RawMessage
	given   map[string]string // by a name of this API: the name that the client has sent
	wrong   strictjson.Problems
}

// Decode decodes the body of a request for a job. The body of a request to an alias may have other names, and then the
// errors have these names, too.
func Decode[T any](c *gin.Context, body []byte, decode func([]byte) (T, error)) (decoded T, err error) {
	j := job{given: map[string]string{}}
	if !Used(c) || json.Unmarshal(body, &j.members) != nil || j.members == nil {
		return decode(body)
	}
	j.rename("type", "jobType", "", same)
	j.rename("jobDetails", "payload", "", same)
	j.rename("maxAttempts", "maxRetryCount", wrongAttempts, retriesOf)
	j.rename("delayUntil", "runAt", "must be a whole number of seconds since 1970", instantOf)
	j.rename("priority", "priority", "must be a whole number", levelOf)
	if string(j.members["jobType"]) == `"EMAIL"` {
		j.rename("payload", "payload", "", mailOf)
	}
	if err := j.wrong.Err("job request"); err != nil {
		return decoded, err
	}
	if body, err = json.Marshal(j.members); err != nil {
		return decoded, fmt.Errorf("write job request: %w", err)
	}
	decoded, err = decode(body)
	return decoded, j.inGivenNames(err)
}

// rename gives a member its name and value in this API. A value that change does not know is wrong; without a message
// it stays as it is, and the decoder returns the error.
func (j *job) rename(from, to, wrong string, change func(json.RawMessage) (json.RawMessage, bool)) {
	value, given := j.members[from]
	if !given {
		return
	}
	if _, taken := j.members[to]; from != to && taken {
		j.wrong.Add(from, "and "+to+" are two names of the same member: leave one out")
		return
	}
	changed, known := change(value)
	if !known {
		if wrong != "" {
			j.wrong.Add(from, wrong)
		}
		return
	}
	delete(j.members, from)
	j.members[to] = changed
	if from != to {
		j.given[to] = from
	}
}

// inGivenNames returns an error about the members of the request with the names that the client has sent.
func (j *job) inGivenNames(err error) error {
	var refused *apierror.Error
	if !errors.As(err, &refused) || refused.Code != apierror.InvalidJobRequest || len(j.given) == 0 {
		return err
	}
	var p strictjson.Problems
	for _, d := range refused.Details {
		end := strings.IndexAny(d.Path+".", ".[")
		p.Add(cmp.Or(j.given[d.Path[:end]], d.Path[:end])+d.Path[end:], d.Message)
	}
	return cmp.Or(p.Err("job request"), err)
}

func same(value json.RawMessage) (json.RawMessage, bool) { return value, true }

// retriesOf converts a number of attempts: three attempts are two retries.
func retriesOf(value json.RawMessage) (json.RawMessage, bool) {
	n, err := strconv.ParseInt(string(value), 10, 32)
	return strconv.AppendInt(nil, n-1, 10), err == nil && n >= 1 && n <= jobspec.MaxRetryCount+1
}

var wrongAttempts = fmt.Sprintf("must be a whole number from 1 to %d", jobspec.MaxRetryCount+1)

// instantOf converts seconds since 1970.
func instantOf(value json.RawMessage) (json.RawMessage, bool) {
	n, err := strconv.ParseInt(string(value), 10, 64)
	return json.RawMessage(`"` + time.Unix(n, 0).UTC().Format(time.RFC3339) + `"`), err == nil && n >= 0 && n < 1<<36
}

// levelOf limits a priority to 0 to 9.
func levelOf(value json.RawMessage) (json.RawMessage, bool) {
	n, err := strconv.ParseInt(string(value), 10, 64)
	if err != nil && !errors.Is(err, strconv.ErrRange) { // of which ParseInt returns the nearest
		return nil, false
	}
	return strconv.AppendInt(nil, min(max(n, 0), 9), 10), true
}

// mailOf converts a mail to one address to the list that EMAIL takes, and uses the subject as the text if there is
// none.
func mailOf(value json.RawMessage) (json.RawMessage, bool) {
	var mail map[string]json.RawMessage
	if json.Unmarshal(value, &mail) != nil || mail == nil {
		return nil, false
	}
	if to := mail["to"]; bytes.HasPrefix(to, []byte(`"`)) {
		mail["to"] = json.RawMessage("[" + string(to) + "]")
	}
	if mail["text"] == nil && mail["html"] == nil && mail["subject"] != nil {
		mail["text"] = mail["subject"]
	}
	changed, err := json.Marshal(mail)
	return changed, err == nil
}
