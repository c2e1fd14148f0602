package aliases

import (
	"bytes"
	"encoding/json"
	"errors"
	"strconv"
	"time"

	"github.com/gin-gonic/gin"
)

// Job makes a JobRequest from the body of a request to an alias. A body that is not an object, and a member that has
// both names, stay as they are: the decoder returns the error.
func Job(c *gin.Context, body []byte) []byte {
	var job map[string]json.RawMessage
	if !Used(c) || json.Unmarshal(body, &job) != nil || job == nil {
		return body
	}
	rename(job, "type", "jobType", same)
	rename(job, "jobDetails", "payload", same)
	rename(job, "maxAttempts", "maxRetryCount", retriesOf)
	rename(job, "delayUntil", "runAt", instantOf)
	rename(job, "priority", "priority", levelOf)
	if string(job["jobType"]) == `"EMAIL"` {
		rename(job, "payload", "payload", mailOf)
	}
	if changed, err := json.Marshal(job); err == nil {
		return changed
	}
	return body
}

// rename gives a member its name and value in this API. A value that change does not know stays as it is.
func rename(job map[string]json.RawMessage, from, to string, change func(json.RawMessage) (json.RawMessage, bool)) {
	value, given := job[from]
	if _, taken := job[to]; !given || from != to && taken {
		return
	}
	if changed, known := change(value); known {
		delete(job, from)
		job[to] = changed
	}
}

func same(value json.RawMessage) (json.RawMessage, bool) { return value, true }

// retriesOf converts a number of attempts: three attempts are two retries.
func retriesOf(value json.RawMessage) (json.RawMessage, bool) {
	n, err := strconv.ParseInt(string(value), 10, 32)
	return strconv.AppendInt(nil, n-1, 10), err == nil
}

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
