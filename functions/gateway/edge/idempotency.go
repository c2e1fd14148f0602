package edge

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/gin-gonic/gin"

	"github.com/jobweaver/jobweaver/shared/apierror"
	"github.com/jobweaver/jobweaver/shared/jobspec"
	"github.com/jobweaver/jobweaver/shared/strictjson"
)

// IdempotencyKeyHeader is the header with the same meaning as idempotencyKey in the body.
const IdempotencyKeyHeader = "Idempotency-Key"

// IdempotencyKey reads the idempotency key from the header: a text, or a text in quotes as in the IETF draft. Empty:
// there is none.
func IdempotencyKey(c *gin.Context) (string, error) {
	values := c.Request.Header.Values(IdempotencyKeyHeader)
	if len(values) == 0 {
		return "", nil
	}
	key := values[0]
	if len(key) >= 2 && strings.HasPrefix(key, `"`) && strings.HasSuffix(key, `"`) {
		key = key[1 : len(key)-1]
	}
	if len(values) > 1 || !utf8.ValidString(key) || utf8.RuneCountInString(key) > jobspec.MaxKey ||
		strictjson.CheckLabel(key) != "" {
		return "", BadKeyHeader("must be given once, with 1 to %d characters and no control characters", jobspec.MaxKey)
	}
	return key, nil
}

// MergeKey sets the body's key to that of the header, if the body has none.
func MergeKey(body *string, header string) error {
	if header != "" && *body != "" && *body != header {
		return BadKeyHeader("differs from idempotencyKey in the body")
	}
	if header != "" {
		*body = header
	}
	return nil
}

// BadKeyHeader refuses an Idempotency-Key.
func BadKeyHeader(format string, args ...any) error {
	wrong := fmt.Sprintf(format, args...)
	e := apierror.New(apierror.InvalidJobRequest, "invalid request: the header %s %s", IdempotencyKeyHeader, wrong)
	e.Details = []apierror.Detail{{Path: IdempotencyKeyHeader, Message: wrong}}
	return e
}
