package gateway_test

import (
	"context"
	"errors"
	"net/http"
	"sync/atomic"
	"testing"

	"github.com/jobweaver/jobweaver/functions/gateway"
	"github.com/jobweaver/jobweaver/shared/apierror"
	"github.com/jobweaver/jobweaver/shared/funchost"
)

type lagBody struct {
	Topics *[]struct {
		Function, Topic  string
		Records, Members int
	}
}

func TestLagIsReadOnceForAllClients(t *testing.T) {
	t.Parallel()
	var reads atomic.Int32
	h := openWith(t, func(cfg *gateway.Config) {
		cfg.Lags = func(context.Context) ([]funchost.Lag, error) {
			reads.Add(1)
			return []funchost.Lag{{Function: "outcome", Topic: "attempt-ended", Records: 7, Members: 2}}, nil
		}
	})
	for range 3 {
		var body lagBody
		h.get("/api/lag").want(http.StatusOK).into(&body)
		if body.Topics == nil || len(*body.Topics) != 1 {
			t.Fatalf("got %+v", body)
		}
		if got := (*body.Topics)[0]; got.Function != "outcome" || got.Topic != "attempt-ended" || got.Records != 7 || got.Members != 2 {
			t.Errorf("got %+v", got)
		}
	}
	if n := reads.Load(); n != 1 {
		t.Errorf("the brokers were asked %d times", n)
	}
}

func TestLagIsNullIfUnknown(t *testing.T) {
	t.Parallel()
	for name, read := range map[string]funchost.Lags{
		"behind a sink":      nil,
		"the broker is away": func(context.Context) ([]funchost.Lag, error) { return nil, errors.New("away") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := openWith(t, func(cfg *gateway.Config) { cfg.Lags = read })
			var body lagBody
			if h.get("/api/lag").want(http.StatusOK).into(&body); body.Topics != nil {
				t.Errorf("got %+v", body)
			}
		})
	}
}

func TestOnlyAnAdminOfTheInstallationSeesLag(t *testing.T) {
	t.Parallel()
	h := openLocked(t)
	for _, c := range []*client{h.as("acme", "admin"), h.as("", "operate", "read")} {
		c.get("/api/lag").wantError(apierror.Forbidden)
	}
	h.as("", "admin").get("/api/lag").want(http.StatusOK)
}
