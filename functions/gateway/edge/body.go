package edge

import (
	"errors"
	"io"
	"mime"
	"net/http"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/gin-gonic/gin"

	"github.com/jobweaver/jobweaver/shared/apibody"
	"github.com/jobweaver/jobweaver/shared/apierror"
)

// ReadJSON reads a body of type application/json with at most limit bytes.
func ReadJSON(c *gin.Context, limit int64) ([]byte, error) {
	if err := RequireJSON(c); err != nil {
		return nil, err
	}
	return ReadBody(c, limit)
}

// ReadAs reads a body of type application/json with at most limit bytes, and decodes it.
func ReadAs[T any](c *gin.Context, limit int64, decode func(body []byte) (T, error)) (asked T, err error) {
	body, err := ReadJSON(c, limit)
	if err != nil {
		return asked, err
	}
	return decode(body)
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

// MediaType returns the media type of the body, in lower case. It refuses a body that is compressed or not UTF-8.
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
	if given && !slices.Contains([]string{"utf-8", "utf8", "us-ascii"}, strings.ToLower(charset)) {
		return "", apierror.New(apierror.UnsupportedMediaType, "the body must be UTF-8, not %q", charset)
	}
	return media, nil
}

const (
	// believed is how much memory a Content-Length reserves before the bytes have arrived, for an authenticated client.
	believed = 256 << 10
	// believedOfStrangers is the same for a client that is not authenticated. A connection has buffers of that size
	// anyway.
	believedOfStrangers = 4 << 10
)

// ReadBody reads a body of at most limit bytes. Its memory counts for the client until the request has been answered.
func ReadBody(c *gin.Context, limit int64) ([]byte, error) {
	load := LoadOf(c)
	size := max(c.Request.ContentLength, 0)
	if size <= limit { // a larger one is not read
		if err := load.Take(size); err != nil {
			return nil, err
		}
	}
	return readFrom(c, limit, believed, func(more int64) error {
		more -= size
		size += max(more, 0)
		return load.Take(max(more, 0))
	})
}

// readFrom begins with memory for the first bytes. When these have arrived, it reserves room for the announced size, or
// doubles the room each time if no size was announced.
func readFrom(c *gin.Context, limit, first int64, room func(size int64) error) ([]byte, error) {
	announced := c.Request.ContentLength
	if announced > limit {
		return nil, tooLarge(limit)
	}
	if first = min(first, announced); announced < 0 {
		first = believedOfStrangers
	}
	from := http.MaxBytesReader(c.Writer, c.Request.Body, limit)
	body := make([]byte, 0, first+1) // with a byte to detect the end
	for {
		n, err := from.Read(body[len(body):cap(body)])
		body = body[:len(body)+n]
		switch tooMany := (*http.MaxBytesError)(nil); {
		case errors.Is(err, io.EOF):
			return body, nil
		case errors.As(err, &tooMany):
			return nil, tooLarge(limit)
		case errors.Is(err, os.ErrDeadlineExceeded):
			c.Header("Connection", "close") // the rest of the body must not be read as a request
			return nil, apierror.New(apierror.RequestTimeout, "the body did not arrive in time: only %d bytes did", len(body))
		case err != nil:
			return nil, apierror.New(apierror.InvalidJobRequest, "the body is incomplete")
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

// WithoutBody refuses a body where a path takes none, for the reason of WithoutQuery. It accepts {}, which some clients
// always send.
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
	// discarded is how much of a body net/http itself reads after its response.
	discarded = 256 << 10
	// Beyond that, the rest of a body is read and discarded for at most this time and this many bytes.
	lingerFor, lingerBytes = 10 * time.Second, 32 << 20
)

// Linger answers a request whose body is not read to its end, and then reads on. A client that writes its whole body
// before it reads would otherwise find the connection reset, and never see the response. HTTP/2 clients see it anyway,
// and a client that waits for 100 Continue has not begun to write.
func Linger(c *gin.Context, answer func()) {
	r, connection := c.Request, http.NewResponseController(c.Writer)
	if r.ProtoMajor != 1 || r.ContentLength >= 0 && r.ContentLength <= discarded || r.Header.Get("Expect") != "" ||
		connection.EnableFullDuplex() != nil { // the recorder of a test
		answer()
		return
	}
	c.Header("Connection", "close")
	answer()
	_ = connection.Flush()
	_ = connection.SetReadDeadline(time.Now().Add(lingerFor))
	_, _ = io.CopyN(io.Discard, r.Body, lingerBytes)
}
