package gateway

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/google/uuid"

	"github.com/jobweaver/jobweaver/functions/gateway/edge"
	"github.com/jobweaver/jobweaver/shared/apidb"
	"github.com/jobweaver/jobweaver/shared/jobspec"
)

// aliasKey marks the context of a request that came by a path of another system (docs/coming-from.md): its body may
// have that system's names. Requests for the paths of this API are read as ever.
type aliasKey struct{}

// aliases serves the paths of the systems that clients come from as if they were this API's. A browser that asks for
// a page gets the dashboard's, which has some of the same addresses.
func (f *Function) aliases(next http.Handler) http.Handler {
	if !f.cfg.Aliases {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if to := aliasOf(r.URL); to != nil && f.page.at(r) == nil {
			r = r.WithContext(context.WithValue(r.Context(), aliasKey{}, true))
			r.URL = to
		}
		next.ServeHTTP(w, r)
	})
}

// aliasOf is the address that another system's stands for; nil: it is none of theirs.
func aliasOf(at *url.URL) *url.URL {
	to := *at
	switch {
	case at.Path == "/actuator/health":
		to.Path, to.RawPath = "/api/health", ""
	case at.Path == "/jobs" || strings.HasPrefix(at.Path, "/jobs/"):
		to.Path = "/api" + at.Path
		if at.RawPath != "" {
			to.RawPath = "/api" + at.RawPath
		}
	default:
		return nil
	}
	return &to
}

func aliased(c *gin.Context) bool { return c.Request.Context().Value(aliasKey{}) != nil }

// ofAlias is a JobRequest made of one that came by an alias. What is no object, and what has both names of a member, is
// left as it is: the decoder says what is wrong with it.
func ofAlias(c *gin.Context, body []byte) []byte {
	var job map[string]json.RawMessage
	if !aliased(c) || json.Unmarshal(body, &job) != nil || job == nil {
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

// rename gives a member its name and value here. A value that change does not know stays as it is.
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

// retriesOf: of three attempts two are retries.
func retriesOf(value json.RawMessage) (json.RawMessage, bool) {
	n, err := strconv.ParseInt(string(value), 10, 32)
	return strconv.AppendInt(nil, n-1, 10), err == nil
}

// instantOf reads seconds since 1970.
func instantOf(value json.RawMessage) (json.RawMessage, bool) {
	n, err := strconv.ParseInt(string(value), 10, 64)
	return json.RawMessage(`"` + time.Unix(n, 0).UTC().Format(time.RFC3339) + `"`), err == nil && n >= 0 && n < 1<<36
}

// levelOf keeps the priorities from 0 to 9. What is below is 0, what is above is 9.
func levelOf(value json.RawMessage) (json.RawMessage, bool) {
	n, err := strconv.ParseInt(string(value), 10, 64)
	if err != nil && !errors.Is(err, strconv.ErrRange) { // of which ParseInt gives the nearest
		return nil, false
	}
	return strconv.AppendInt(nil, min(max(n, 0), 9), 10), true
}

// mailOf gives a mail to one address the list that EMAIL takes, and one with a subject alone that as its text.
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

// openCallback tells whether a callback needs neither attempt nor secret.
func (f *Function) openCallback(c *gin.Context) bool { return aliased(c) && f.cfg.AliasCallbacks }

// withAttempt gives a callback without an attempt the last one of its job.
func (f *Function) withAttempt(c *gin.Context, body []byte) ([]byte, error) {
	var said map[string]json.RawMessage
	var id uuid.UUID
	if !f.openCallback(c) || json.Unmarshal(body, &said) != nil || said["attempt"] != nil ||
		json.Unmarshal(said["jobId"], &id) != nil {
		return body, nil
	}
	ctx, cancel := edge.WithPatience(c)
	defer cancel()
	job, err := f.store.jobs.Job(ctx, apidb.Everyone, id)
	if err != nil {
		return nil, edge.OfJob(id, err)
	}
	said["attempt"] = strconv.AppendInt(nil, int64(max(job.Attempt, 1)), 10)
	changed, err := json.Marshal(said)
	if err != nil || len(changed) > jobspec.MaxCallbackBytes {
		return body, nil //nolint:nilerr // the decoder says what is wrong with it
	}
	return changed, nil
}
