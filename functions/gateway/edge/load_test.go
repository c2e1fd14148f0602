package edge

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gin-gonic/gin"

	"github.com/jobweaver/jobweaver/shared/apierror"
)

func from(address string) *gin.Context {
	c, _ := gin.CreateTestContext(httptest.NewRecorder())
	c.Request = httptest.NewRequest(http.MethodPost, "/api/jobs/callback", http.NoBody)
	c.Request.RemoteAddr = address + ":1000"
	return c
}

// Unauthenticated senders that send long bodies slowly must not exhaust memory, nor keep others out.
func TestUnauthenticatedSendersShareFewPlacesForLongBodies(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d, err := NewLimits(LimitsConfig{})
		if err != nil {
			t.Fatal(err)
		}
		held := []func(){}
		refused := func(address string) bool {
			t.Helper()
			began := time.Now()
			release, err := d.Place(from(address))
			if err == nil {
				held = append(held, release)
				return false
			}
			var slow SlowDownError
			if !errors.As(err, &slow) || time.Since(began) != StrangerPatience {
				t.Fatalf("after %s: %v", time.Since(began), err)
			}
			return true
		}
		for place := range StrangersEach {
			if refused("192.0.2.1") {
				t.Errorf("place %d of an address", place)
			}
		}
		if !refused("192.0.2.1") {
			t.Error("an address has more places than it may have")
		}
		for n := range Strangers - StrangersEach {
			if refused(fmt.Sprintf("198.51.100.%d", n)) {
				t.Errorf("place %d of all", StrangersEach+n)
			}
		}
		if !refused("192.0.2.2") {
			t.Error("there are more places than there may be")
		}
		for range DefaultAuthFailureLimit {
			guess := from("203.0.113.1")
			guess.Request.Header.Set(CallbackSecretHeader, "guess")
			_ = d.CountFailure(guess, apierror.New(apierror.Unauthorized, "no"))
		}
		if refused("203.0.113.1") || !refused("203.0.113.1") {
			t.Error("an address of too many failures does not have exactly one place")
		}
		for _, release := range held {
			release()
		}
		if refused("192.0.2.1") || refused("203.0.113.1") {
			t.Error("a place that was left cannot be taken")
		}
	})
}
