package funchost

import (
	"strings"
	"testing"
)

// An unknown argument must not start the function.
func TestAFunctionAnswersItsArguments(t *testing.T) {
	t.Parallel()
	for args, want := range map[string]struct {
		code            int
		out, complaints string
	}{
		"--help":          {0, "gateway healthcheck  ask", ""},
		"-h":              {0, "DATABASE_URL", ""},
		"help":            {0, "docs/settings.md", ""},
		"--version":       {0, "gateway " + Version + "\n", ""},
		"version":         {0, "gateway " + Version + "\n", ""},
		"serve":           {exitUsage, "", `gateway: unknown argument "serve": `},
		"--port 8080":     {exitUsage, "", `gateway: unknown argument "--port": `},
		"healthcheck now": {exitUsage, "", `gateway: unknown argument "now": `},
	} {
		var out, complaints strings.Builder
		code := answerArguments("gateway", strings.Fields(args), &out, &complaints)
		if code != want.code || !strings.Contains(out.String(), want.out) || !strings.Contains(complaints.String(), want.complaints) {
			t.Errorf("%s: %d, %q, %q", args, code, out.String(), complaints.String())
		}
		if (out.Len() > 0) == (complaints.Len() > 0) {
			t.Errorf("%s: it wrote to both or to none: %q, %q", args, out.String(), complaints.String())
		}
	}
}
