package edge

import (
	"errors"
	"io"
	"mime"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/gin-gonic/gin"

	"github.com/jobweaver/jobweaver/shared/apibody"
	"github.com/jobweaver/jobweaver/shared/apierror"
)

// ReadJSON reads a body of type application/json and at most limit bytes.
func ReadJSON(c *gin.Context, limit int64) ([]byte, error) {
	if err := RequireJSON(c); err != nil {
		return nil, err
	}
	return ReadBody(c, limit)
}

// RequireJSON refuses a body that is not application/json.
func RequireJSON(c *gin.Context) error { return RequireType(c, "application/json") }

// RequireType refuses a body of another media type.
func RequireType(c *gin.Context, wanted string) error {
	media, err := MediaType(c)
	if err == nil && media != wanted {
		err = apierror.New(apierror.UnsupportedMediaType,
			"the body must be %[1]s, not %[2]q: send the header 'Content-Type: %[1]s'", wanted, media)
	}
	return err
}

// MediaType is the body's, in small letters. It refuses what is compressed, or not UTF-8.
func MediaType(c *gin.Context) (string, error) {
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
	charset, given := params["charset"]
	if given && !strings.EqualFold(charset, "utf-8") && !strings.EqualFold(charset, "us-ascii") {
		return "", apierror.New(apierror.UnsupportedMediaType, "the body must be UTF-8, not %q", charset)
	}
	return media, nil
}

const (
	// believed is how much of a Content-Length gets memory before its bytes are there, of a client that is known.
	believed = 256 << 10
	// believedOfStrangers is the same of one that is not. A connection has buffers of that size anyway.
	believedOfStrangers = 4 << 10
)

// ReadBody reads a body of at most limit bytes. Its memory is the client's until the request has been answered.
func ReadBody(c *gin.Context, limit int64) ([]byte, error) {
	load := LoadOf(c)
	size := max(c.Request.ContentLength, 0)
	if size <= limit { // else it is not read
		if err := load.Take(c, size); err != nil {
			return nil, err
		}
	}
	return readFrom(c, limit, believed, func(more int64) error {
		more -= size
		size += max(more, 0)
		return load.Take(c, max(more, 0))
	})
}

// readFrom begins with memory for first bytes. When these have come it asks for room for what was announced, or for
// twice as much each time where nothing was.
func readFrom(c *gin.Context, limit, first int64, room func(size int64) error) ([]byte, error) {
	announced := c.Request.ContentLength
	if announced > limit {
		return nil, tooLarge(limit)
	}
	if first = min(first, announced); announced < 0 {
		first = believedOfStrangers
	}
	from := http.MaxBytesReader(c.Writer, c.Request.Body, limit)
	body := make([]byte, 0, first+1) // with a byte in which to find the end
	for {
		n, err := from.Read(body[len(body):cap(body)])
		body = body[:len(body)+n]
		switch tooMany := (*http.MaxBytesError)(nil); {
		case errors.Is(err, io.EOF):
			return body, nil
		case errors.As(err, &tooMany):
			return nil, tooLarge(limit)
		case errors.Is(err, os.ErrDeadlineExceeded):
			c.Header("Connection", "close") // what comes of the body later is no request
			return nil, apierror.New(apierror.RequestTimeout, "the body did not come in time: %d bytes did", len(body))
		case err != nil:
			return nil, apierror.New(apierror.InvalidJobRequest, "the body broke off")
		}
		if len(body) == cap(body) {
			size := max(announced, min(2*int64(cap(body)), limit))
			if err := room(size); err != nil {
				return nil, err
			}
			body = append(make([]byte, 0, size+1), body...)
		}
	}
}

func tooLarge(limit int64) error {
	return apierror.New(apierror.PayloadTooLarge, "the body may have at most %d bytes", limit)
}

// WithoutBody refuses a body where a path takes none, for the reason of WithoutQuery. Clients that always send a body
// send {}.
func WithoutBody(handle func(*gin.Context) error) func(*gin.Context) error {
	return func(c *gin.Context) error {
		if c.Request.ContentLength != 0 {
			body, err := ReadBody(c, apibody.MaxControlBytes)
			if err != nil {
				return err
			}
			if text := strings.TrimSpace(string(body)); text != "" && text != "{}" {
				return apierror.New(apierror.InvalidJobRequest, "%s %s takes no body", c.Request.Method, c.Request.URL.Path)
			}
		}
		return handle(c)
	}
}

const (
	// net/http itself reads on for so much of a body after its answer.
	discarded = 256 << 10
	// Beyond that, the rest of a body is read and thrown away for so long and so many bytes.
	lingerFor, lingerBytes = 10 * time.Second, 32 << 20
)

// Linger answers a request whose body is not read to its end, and reads on. A client that writes its whole body
// before it reads would otherwise find the connection reset, and never see the answer. A client of HTTP/2 sees it
// anyway, and one that waits for 100 Continue has not begun to write.
func Linger(c *gin.Context, answer func()) {
	r, connection := c.Request, http.NewResponseController(c.Writer)
	if r.ProtoMajor != 1 || r.ContentLength >= 0 && r.ContentLength <= discarded || r.Header.Get("Expect") != "" ||
		connection.EnableFullDuplex() != nil { // a recorder of a test
		answer()
		return
	}
	c.Header("Connection", "close")
	answer()
	_ = connection.Flush()
	_ = connection.SetReadDeadline(time.Now().Add(lingerFor))
	_, _ = io.CopyN(io.Discard, r.Body, lingerBytes)
}
