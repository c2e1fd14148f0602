package stream

import (
	"net/http"
	"net/http/httptest"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gin-gonic/gin"
)

// unread is a connection whose client does not read.
type unread struct {
	http.ResponseWriter
	deadline time.Time
}

func (u *unread) SetWriteDeadline(at time.Time) error {
	u.deadline = at
	return nil
}

func (u *unread) Write([]byte) (int, error) {
	<-time.After(time.Until(u.deadline))
	return 0, os.ErrDeadlineExceeded
}

func TestStreamOfAClientThatDoesNotReadEnds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := &unread{ResponseWriter: httptest.NewRecorder()}
		c, _ := gin.CreateTestContext(w)
		began := time.Now()
		if deliver(c, http.NewResponseController(w), []byte("x")) || time.Since(began) != takePatience {
			t.Errorf("it was given up after %s", time.Since(began))
		}
	})
}
