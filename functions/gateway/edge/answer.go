package edge

import (
	"context"
	"fmt"
	"io"
	"net/http"

	"github.com/gin-gonic/gin"
	jsonv2 "github.com/go-json-experiment/json"

	"github.com/jobweaver/jobweaver/shared/strictjson"
)

// Answer answers with JSON. With AnswerText and AnswerTagged it is the only way to answer, so that the memory of every
// answer counts until the client has read it. A read is refused if its owner has no memory left; a write is not,
// because it may be committed.
func Answer(c *gin.Context, status int, body any, options ...jsonv2.Options) error {
	text, err := encode(c, body, !isRead(c), options...)
	if err != nil {
		return err
	}
	c.Data(status, JSONType, text)
	return nil
}

func isRead(c *gin.Context) bool {
	return c.Request.Method == http.MethodGet || c.Request.Method == http.MethodHead
}

// AnswerText answers with a text whose size is bounded by the body of the request.
func AnswerText(c *gin.Context, status int, contentType string, text []byte) {
	if len(text) > freeAnswer {
		_ = LoadOf(c).answer(int64(len(text)), true)
	}
	c.Data(status, contentType, text)
}

// Encode returns the JSON of an answer. It is refused if its owner has no memory left.
func Encode(c *gin.Context, body any, options ...jsonv2.Options) ([]byte, error) {
	return encode(c, body, false, options...)
}

func encode(c *gin.Context, body any, must bool, options ...jsonv2.Options) ([]byte, error) {
	to := countedText{count: func(bytes int64) error { return LoadOf(c).answer(bytes, must) }}
	options = append([]jsonv2.Options{strictjson.AsEncodingJSON}, options...)
	if err := jsonv2.MarshalWrite(&to, body, options...); err != nil {
		return nil, fmt.Errorf("write answer: %w", err)
	}
	return to.text, nil
}

// countedText is a text whose memory is counted before it is allocated.
type countedText struct {
	count func(int64) error
	text  []byte
}

func (t *countedText) Write(part []byte) (int, error) {
	if need := len(t.text) + len(part); need > cap(t.text) {
		size := max(need, cap(t.text)+cap(t.text)/2)
		if size > freeAnswer {
			if err := t.count(int64(size - cap(t.text))); err != nil {
				return 0, err
			}
		}
		t.text = append(make([]byte, 0, size), t.text...)
	}
	t.text = append(t.text, part...)
	return len(part), nil
}

// smallAnswer is the size up to which an answer of another function is counted as it arrives.
const smallAnswer = 64 << 10

// ReadAll reads what another function answers. It waits until the owner of the request has memory for it. An answer
// that is not small takes most bytes at once: answers that took their memory in parts could all wait for each other.
func ReadAll(ctx context.Context, c *gin.Context, from io.Reader, most int64) ([]byte, error) {
	taken, used := int64(0), int64(0)
	to := countedText{count: func(bytes int64) error {
		if used += bytes; used <= taken {
			return nil
		}
		more := used - taken
		if used > smallAnswer {
			more = max(more, most-taken)
		}
		taken += more
		return LoadOf(c).Await(ctx, more)
	}}
	if _, err := io.Copy(&to, from); err != nil {
		return nil, fmt.Errorf("read answer: %w", err)
	}
	return to.text, nil
}
