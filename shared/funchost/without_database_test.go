package funchost

import (
	"context"
	"strings"
	"testing"
)

// The function uses neither the installation's database nor its brokers. Not parallel, because it reads the
// environment.
func TestAFunctionWithoutDatabaseRunsWithoutABroker(t *testing.T) {
	for _, name := range []string{"DATABASE_URL", "KAFKA_BROKERS", "K_SINK"} {
		t.Setenv(name, "")
	}
	if _, err := loadEnv(Needs{Database: true}); err == nil || !strings.HasPrefix(err.Error(), "DATABASE_URL") {
		t.Errorf("any other function: %v", err)
	}
	env, err := loadEnv(Needs{})
	if err != nil {
		t.Fatal(err)
	}
	env.Plain("GATEWAY_URL (http)")
	if plain := strings.Join(env.Config.plain(), ", "); plain != "GATEWAY_URL (http)" {
		t.Errorf("in plain text are %s", plain)
	}
	env.Config.NoListen = true
	ctx, stop := context.WithCancel(t.Context())
	ran := false
	err = Run(ctx, env.Config, Function{Name: "alone", Silent: true, Run: func(context.Context, Publish) error {
		ran = true
		stop()
		return nil
	}})
	if err != nil || !ran {
		t.Errorf("it ran: %v; %v", ran, err)
	}
}
