package edge

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/gin-gonic/gin"
	"golang.org/x/sync/errgroup"
)

// carried calls handle with a request of an address, whose memory counts.
func carried(d *Limits, method, address string, handle func(*gin.Context) error) (*httptest.ResponseRecorder, error) {
	w := httptest.NewRecorder()
	c, _ := gin.CreateTestContext(w)
	c.Request = httptest.NewRequest(method, "/", http.NoBody)
	c.Request.RemoteAddr = address + ":1000"
	return w, d.Carry(c, handle)
}

func newLimits(t testing.TB) *Limits {
	t.Helper()
	d, err := NewLimits(LimitsConfig{})
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func TestAnAnswerIsTheJSONOfItsBody(t *testing.T) {
	t.Parallel()
	type part struct {
		At   time.Time       `json:"at"`
		Raw  json.RawMessage `json:"raw"`
		None []string        `json:"none"`
		Some map[string]any  `json:"some,omitempty"`
	}
	for _, body := range []any{
		part{At: time.Unix(1e9, 5).UTC(), Raw: json.RawMessage(`{"a" : 1.50, "b":"<\u003c>"}`)}, nil, []part{},
		map[string]any{"b": "<&>\u2028", "a": json.Number("12345678901234567890"), "c": []byte("x")}, strings.Repeat("<x>", 50_000),
	} {
		want, err := json.Marshal(body)
		if err != nil {
			t.Fatal(err)
		}
		w, err := carried(newLimits(t), http.MethodGet, "192.0.2.1", func(c *gin.Context) error { return Answer(c, 203, body) })
		if err != nil || w.Code != 203 || !bytes.Equal(w.Body.Bytes(), want) {
			t.Errorf("%.200s, %v, not %.200s", w.Body, err, want)
		}
	}
}

// The memory of an answer is counted before it is made, and until it has been written.
func TestAnswersOfACallerGetHalfOfTheFreeMemory(t *testing.T) {
	t.Parallel()
	d, many := newLimits(t), strings.Split(strings.Repeat("x", 2<<20), "")
	answers := func(method, address string) error {
		_, err := carried(d, method, address, func(c *gin.Context) error { return Answer(c, http.StatusOK, many) })
		return err
	}
	_, err := carried(d, http.MethodGet, "192.0.2.1", func(c *gin.Context) error {
		if err := LoadOf(c).Take(20 << 20); err != nil {
			return err
		}
		if slow := (SlowDownError{}); !errors.As(answers(http.MethodGet, "192.0.2.1"), &slow) {
			t.Error("a second large answer is made")
		}
		if err := answers(http.MethodPost, "192.0.2.1"); err != nil {
			t.Errorf("the answer to a write is refused: %v", err)
		}
		if err := answers(http.MethodGet, "192.0.2.2"); err != nil {
			t.Errorf("another caller gets no answer: %v", err)
		}
		LoadOf(c).Drop()
		return answers(http.MethodGet, "192.0.2.1")
	})
	if err != nil || !d.load.Take("all", maxLoad/2) {
		t.Errorf("the memory is not given back: %v", err)
	}
}

// Of several reads of large rows the first has room for its answer, too.
func TestALargeReadHasRoomForItsAnswer(t *testing.T) {
	t.Parallel()
	d, large := newLimits(t), strings.Repeat("x", 10<<20)
	_, err := carried(d, http.MethodGet, "192.0.2.1", func(c *gin.Context) error {
		if err := LoadOf(c).read(int64(len(large)) + 100); err != nil {
			return err
		}
		_, err := carried(d, http.MethodGet, "192.0.2.1", func(c *gin.Context) error { return LoadOf(c).read(10 << 20) })
		if err == nil {
			t.Error("the second one reads its rows")
		}
		return Answer(c, http.StatusOK, large)
	})
	if err != nil {
		t.Errorf("the first one gets no answer: %v", err)
	}
}

// While a read waits, nothing of what it has read is held.
func TestAWaitingReadHoldsNoMemory(t *testing.T) {
	t.Parallel()
	d := newLimits(t)
	a := &Authenticator{Limits: d}
	_, err := carried(d, http.MethodGet, "192.0.2.1", func(c *gin.Context) error {
		c.Request.URL.RawQuery = "wait=1ms"
		_, release, err := AwaitEnd(c, a, func() (bool, error) { return true, LoadOf(c).read(11 << 20) },
			func(bool) bool { return false }, func(ctx context.Context) {
				if l := LoadOf(c); l.bytes != heldBytes {
					t.Errorf("it holds %d bytes", l.bytes)
				}
				<-ctx.Done()
			})
		release()
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

// A waiting claim takes memory of its owner, so there is a limit for all owners together.
func TestHeldResponsesTakeMemory(t *testing.T) {
	t.Parallel()
	d, held := newLimits(t), 0
	for _, owner := range []string{"192.0.2.1", "192.0.2.2", "192.0.2.3", "192.0.2.4"} {
		for {
			c := from(owner)
			l := &Load{c: c, room: d.load}
			if l.Hold() != nil {
				break
			}
			held++
		}
	}
	if most := maxLoad / heldBytes; held >= most || held < most/2 {
		t.Errorf("%d responses are held", held)
	}
}

// Several large answers of another function at once must not each have a part of the memory, and wait for the rest.
func TestLargeAnswersDoNotWaitForEachOther(t *testing.T) {
	t.Parallel()
	d, large := newLimits(t), strings.Repeat("x", 4<<20)
	var all errgroup.Group
	for range 40 {
		all.Go(func() error {
			_, err := carried(d, http.MethodPost, "192.0.2.1", func(c *gin.Context) error {
				ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
				defer cancel()
				text, err := ReadAll(ctx, c, struct{ io.Reader }{strings.NewReader(large)}, 5<<20) // in parts
				if err == nil && string(text) != large {
					err = errors.New("it is cut")
				}
				return err
			})
			return err
		})
	}
	if err := all.Wait(); err != nil {
		t.Error(err)
	}
}
