package publicurl_test

import (
	"strings"
	"testing"

	"github.com/jobweaver/jobweaver/shared/publicurl"
)

func TestTheCallbackIsBelowThePublicURLUnlessItIsGiven(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ public, given, want string }{
		{"", "", ""},
		{"", "https://a/b", "https://a/b"},
		{"https://h/jobs/", "", "https://h/jobs/api/jobs/callback"},
		{"https://h", "", "https://h/api/jobs/callback"},
		{"https://h/jobs", "https://a/b", "https://a/b"},
	} {
		if got, err := (publicurl.Config{URL: c.public}).Callback(c.given); err != nil || got != c.want {
			t.Errorf("%+v: %q, %v", c, got, err)
		}
	}
	if _, err := (publicurl.Config{URL: "h/jobs"}).Callback(""); err == nil || !strings.HasPrefix(err.Error(), "PUBLIC_URL: ") {
		t.Errorf("a URL that is none: %v", err)
	}
}
