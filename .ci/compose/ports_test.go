package compose_test

import "testing"

// Otherwise an EXTERNAL job calls back to a port where another program listens, or none.
func TestCallbacksReachThePortOfTheGateway(t *testing.T) {
	t.Parallel()
	for setting, want := range map[string]string{
		"GATEWAY_PORT=18080": "http://localhost:18080/api/jobs/callback", "LOG_LEVEL=info": "http://localhost:8080/api/jobs/callback",
		"CALLBACK_URL=https://jobs.example.org/callback": "https://jobs.example.org/callback",
	} {
		project := load(t, setting)
		if got := values(t, project.Services["worker"])["CALLBACK_URL"]; got != want {
			t.Errorf("with %s the worker is called back at %s, not at %s", setting, got, want)
		}
	}
}
