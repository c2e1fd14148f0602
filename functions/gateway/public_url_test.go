package gateway_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"testing"

	"github.com/jobweaver/jobweaver/functions/gateway"
	"github.com/jobweaver/jobweaver/shared/publicurl"
)

// below starts a proxy that has a gateway below a path, and everything else beside it.
func below(t *testing.T, h *fixture, base string, strips bool) string {
	t.Helper()
	to, err := url.Parse(h.base)
	if err != nil {
		t.Fatal(err)
	}
	var proxy http.Handler = httputil.NewSingleHostReverseProxy(to)
	if strips {
		proxy = http.StripPrefix(base, proxy)
	}
	mux := http.NewServeMux()
	mux.Handle(base+"/", proxy)
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	return server.URL
}

func TestAllLinksLeadBelowThePublicURL(t *testing.T) {
	t.Parallel()
	for _, base := range []string{"/jobs", "/tools/job-weaver"} {
		h := openWith(t, func(cfg *gateway.Config) { cfg.Public.URL = "https://example.org" + base + "/" })
		for name, strips := range map[string]bool{"a proxy that removes the path": true, "a proxy that passes it on": false} {
			at := below(t, h, base, strips)
			for _, page := range []string{"/", "/jobs", "/jobs/0193-x", "/login?code=x"} {
				document := fetch(t, http.MethodGet, at+base+page, "", http.StatusOK)
				files := loaded(t, document.body)
				if len(files) < 3 {
					t.Errorf("%s, %s%s: the document loads %s", name, base, page, files)
				}
				for _, file := range files {
					if !strings.HasPrefix(file, base+"/") {
						t.Errorf("%s: the document loads %s", name, file)
					}
					fetch(t, http.MethodGet, at+file, "", http.StatusOK)
				}
			}
			made := fetch(t, http.MethodPost, at+base+"/api/jobs", `{"jobType":"SIMULATION","payload":{"steps":[{"type":"LOG","message":"x"}]}}`, http.StatusAccepted)
			if !strings.HasPrefix(made.location, base+"/api/jobs/") {
				t.Errorf("%s: Location is %s", name, made.location)
			}
			fetch(t, http.MethodGet, at+made.location, "", http.StatusOK)
			reference := fetch(t, http.MethodGet, at+base+"/api/reference", "", http.StatusOK)
			if strings.Contains(reference.body, `href="/`) {
				t.Errorf("%s: the reference has a link to the root", name)
			}
		}
	}
}

func TestAPublicURLThatCannotBeIsRefused(t *testing.T) {
	t.Parallel()
	for _, wrong := range []string{"/jobs", "example.org", "ftp://h/x", "https://h/x?y", "https://h/%41", "https://h/../x", "https://h/api", "https://h/hooks/x", "https://u@h"} {
		if _, err := gateway.New(gateway.Config{Public: publicurl.Config{URL: wrong}}, nil); err == nil || !strings.HasPrefix(err.Error(), "PUBLIC_URL: ") {
			t.Errorf("%s: %v", wrong, err)
		}
	}
}

type fetched struct{ body, location string }

func fetch(t *testing.T, method, address, body string, want int) fetched {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, address, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Accept", "text/html, */*")
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	text, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode != want {
		t.Errorf("%s %s: %d %s, %v", method, address, res.StatusCode, text, err)
	}
	return fetched{string(text), res.Header.Get("Location")}
}
