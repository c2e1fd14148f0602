package compose_test

import (
	"fmt"
	"regexp"
	"testing"
)

// Otherwise an EXTERNAL job calls back to a port where another program listens, or none.
func TestCallbacksReachThePortOfTheGateway(t *testing.T) {
	t.Parallel()
	for setting, want := range map[string]string{
		"GATEWAY_PORT=18080": "http://localhost:18080/api/jobs/callback", "LOG_LEVEL=info": "http://localhost:8080/api/jobs/callback",
		"CALLBACK_URL=https://jobs.example.org/callback": "https://jobs.example.org/callback",
	} {
		project := load(t, setting)
		for _, function := range []string{"runjob", "pull"} {
			if got := values(t, project.Services[function])["CALLBACK_URL"]; got != want {
				t.Errorf("with %s %s calls back at %s, not at %s", setting, function, got, want)
			}
		}
	}
}

func TestTheReadmeHasTheNumberOfImages(t *testing.T) {
	t.Parallel()
	built := 0
	for _, service := range load(t).Services {
		if service.Build != nil && len(service.Profiles) == 0 {
			built++
		}
	}
	if want := fmt.Sprintf(`first start builds %d\s+images`, built); !regexp.MustCompile(want).MatchString(read(t, "README.md")) {
		t.Errorf("README.md has another number than %d", built)
	}
}
