package localpostgres

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
)

func TestADownloadShowsABar(t *testing.T) {
	t.Parallel()
	file := bytes.Repeat([]byte("PostgreSQL"), barFrom/10+1)
	repository := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/maven2/a.jar" {
			t.Errorf("asked for %s", r.URL)
		}
		w.Header().Set("Content-Length", strconv.Itoa(len(file)))
		_, _ = w.Write(file)
	}))
	defer repository.Close()
	var screen bytes.Buffer
	m, err := startMirror(repository.URL+"/maven2", &screen)
	if err != nil {
		t.Fatal(err)
	}
	res, err := http.Get(m.at + "/a.jar") //nolint:noctx // as the library does
	if err != nil {
		t.Fatal(err)
	}
	got, err := io.ReadAll(res.Body)
	_ = res.Body.Close()
	if err != nil || !bytes.Equal(got, file) {
		t.Errorf("%d bytes of %d came: %v", len(got), len(file), err)
	}
	http.DefaultClient.CloseIdleConnections()
	if err := m.stop(); err != nil || !strings.Contains(screen.String(), "%") {
		t.Errorf("%v, the screen has %q", err, screen.String())
	}
}

func TestADownloadNamesWhyTheRepositoryIsNotReached(t *testing.T) {
	t.Parallel()
	m, err := startMirror("http://127.0.0.1:1", io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	res, err := http.Get(m.at + "/a.jar") //nolint:noctx // as the library does
	if err != nil {
		t.Fatal(err)
	}
	_ = res.Body.Close()
	http.DefaultClient.CloseIdleConnections()
	if err := m.stop(); err == nil || !strings.Contains(err.Error(), "connection refused") {
		t.Errorf("it was %v", err)
	}
}
