package gateway

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/gin-gonic/gin"

	"github.com/jobweaver/jobweaver/shared/apierror"
	"github.com/jobweaver/jobweaver/shared/jobspec"
)

const idempotencyHeader = "Idempotency-Key"

// keyHeader reads the header that other APIs have for what is idempotencyKey in the body: a text, or as the IETF draft
// has it a text in quotes. Empty: there is none.
func keyHeader(c *gin.Context) (string, error) {
	values := c.Request.Header.Values(idempotencyHeader)
	if len(values) == 0 {
		return "", nil
	}
	key := values[0]
	if len(key) > 2 && strings.HasPrefix(key, `"`) && strings.HasSuffix(key, `"`) {
		key = key[1 : len(key)-1]
	}
	if len(values) > 1 || key == "" || !utf8.ValidString(key) || utf8.RuneCountInString(key) > jobspec.MaxKey {
		return "", badKeyHeader("must be given once, with 1 to %d characters", jobspec.MaxKey)
	}
	return key, nil
}

// sameKey gives the body's key the header's value, if the body has none.
func sameKey(body *string, header string) error {
	if header != "" && *body != "" && *body != header {
		return badKeyHeader("differs from idempotencyKey in the body")
	}
	if header != "" {
		*body = header
	}
	return nil
}

func badKeyHeader(format string, args ...any) error {
	wrong := fmt.Sprintf(format, args...)
	e := apierror.New(apierror.InvalidJobRequest, "invalid request: the header %s %s", idempotencyHeader, wrong)
	e.Details = []apierror.Detail{{Path: idempotencyHeader, Message: wrong}}
	return e
}
