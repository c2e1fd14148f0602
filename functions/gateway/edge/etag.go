package edge

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/gin-gonic/gin"

	"github.com/jobweaver/jobweaver/shared/apierror"
)

// JobTag is the entity tag of a job as it is shown. The version alone is not enough: progress, log lines, blockedBy and
// a command under way change the response, and none of them is a transition.
func JobTag(version int64, shown []byte) string {
	return `W/"` + strconv.FormatInt(version, 10) + "-" + Digest(shown) + `"`
}

// ContentTag is the entity tag of a body that is the same for all clients. It is weak, because the body may be sent
// compressed.
func ContentTag(content []byte) string { return `W/"` + Digest(content) + `"` }

// Digest is a short name of some content.
func Digest(content []byte) string {
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:8])
}

// AnswerTagged answers with a body and its entity tag, or with 304 to a client that has the body already.
func AnswerTagged(c *gin.Context, tag, contentType string, body []byte) {
	c.Header("ETag", tag)
	if has(c.Request, tag) {
		c.Writer.Header().Del("Content-Encoding") // a client would try to decompress the empty body
		c.Status(http.StatusNotModified)
		c.Writer.WriteHeaderNow()
		return
	}
	c.Data(http.StatusOK, contentType, body)
}

// has reports whether a request's If-None-Match contains a tag, by the weak comparison of RFC 9110.
func has(r *http.Request, tag string) bool {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		return false
	}
	return names(r.Header.Values("If-None-Match"), tag)
}

// Match returns nil for a request without If-Match, and else a function that reports whether the header has a tag.
func Match(r *http.Request) func(tag string) bool {
	given := r.Header.Values("If-Match")
	if len(given) == 0 {
		return nil
	}
	return func(tag string) bool { return names(given, tag) }
}

// ChangeTag is the entity tag of what can be changed, by when that was. What else it shows leaves the tag as it is, so
// it is weak.
func ChangeTag(updatedAt time.Time) string { return fmt.Sprintf(`W/"%x"`, updatedAt.UnixMicro()) }

// MatchChange is Match for the tags of ChangeTag.
func MatchChange(r *http.Request) func(updatedAt time.Time) bool {
	named := Match(r)
	if named == nil {
		return nil
	}
	return func(updatedAt time.Time) bool { return named(ChangeTag(updatedAt)) }
}

// MatchJob is Match for the version in the tags of jobs: what else a job shows is no change of it.
func MatchJob(r *http.Request) func(version int64) bool {
	given := r.Header.Values("If-Match")
	if len(given) == 0 {
		return nil
	}
	var versions []string
	for tag := range strings.SplitSeq(strings.Join(given, ","), ",") {
		version, _, _ := strings.Cut(strings.TrimPrefix(strings.TrimSpace(tag), "W/"), "-")
		versions = append(versions, strings.TrimPrefix(version, `"`))
	}
	return func(version int64) bool {
		return slices.Contains(versions, "*") || slices.Contains(versions, strconv.FormatInt(version, 10))
	}
}

// WithoutMatch refuses If-Match where the version that a client has read cannot be compared: a condition that is not
// checked would be worse than none.
func WithoutMatch(handle func(*gin.Context) error) func(*gin.Context) error {
	return func(c *gin.Context) error {
		if len(c.Request.Header.Values("If-Match")) > 0 {
			return apierror.New(apierror.InvalidJobRequest, "%s %s takes no If-Match", c.Request.Method, c.Request.URL.Path)
		}
		return handle(c)
	}
}

func names(headers []string, tag string) bool {
	for given := range strings.SplitSeq(strings.Join(headers, ","), ",") {
		given = strings.TrimSpace(given)
		if given == "*" || strings.TrimPrefix(given, "W/") == strings.TrimPrefix(tag, "W/") {
			return true
		}
	}
	return false
}
