package gateway

import (
	"bytes"
	"errors"
	"mime"
	"net/http"
	"strings"

	"github.com/gin-gonic/gin"

	"github.com/jobweaver/jobweaver/shared/apierror"
)

// readJSON reads a body of type application/json and at most limit bytes.
func readJSON(c *gin.Context, limit int64) ([]byte, error) {
	media, err := mediaType(c)
	if err != nil {
		return nil, err
	}
	if media != "application/json" {
		return nil, apierror.New(apierror.UnsupportedMediaType, "the body must be application/json, not %q", media)
	}
	return readBody(c, limit)
}

// mediaType is the body's, in small letters. It refuses what is compressed, or not UTF-8.
func mediaType(c *gin.Context) (string, error) {
	if encoding := c.GetHeader("Content-Encoding"); encoding != "" && !strings.EqualFold(encoding, "identity") {
		return "", apierror.New(apierror.UnsupportedMediaType, "the body must not be encoded as %q", encoding)
	}
	header := c.GetHeader("Content-Type")
	if header == "" {
		return "", nil
	}
	media, params, err := mime.ParseMediaType(header)
	if err != nil {
		return "", apierror.New(apierror.UnsupportedMediaType, "Content-Type %q cannot be read", header)
	}
	if charset, given := params["charset"]; given && !strings.EqualFold(charset, "utf-8") {
		return "", apierror.New(apierror.UnsupportedMediaType, "the body must be UTF-8, not %q", charset)
	}
	return media, nil
}

// believed is how much of a Content-Length gets memory before its bytes are there.
const believed = 256 << 10

func readBody(c *gin.Context, limit int64) ([]byte, error) {
	if c.Request.ContentLength > limit {
		return nil, tooLarge(limit)
	}
	var body bytes.Buffer
	body.Grow(int(min(max(c.Request.ContentLength, 0), believed)) + bytes.MinRead)
	_, err := body.ReadFrom(http.MaxBytesReader(c.Writer, c.Request.Body, limit))
	if tooMany := (*http.MaxBytesError)(nil); errors.As(err, &tooMany) {
		return nil, tooLarge(limit)
	}
	if err != nil {
		return nil, apierror.New(apierror.InvalidJobRequest, "the body broke off")
	}
	return body.Bytes(), nil
}

func tooLarge(limit int64) error {
	return apierror.New(apierror.PayloadTooLarge, "the body may have at most %d bytes", limit)
}
