package dev

import (
	"errors"
	"io"
	"net"
	"net/http"
	"strconv"
	"syscall"
	"testing"
)

func TestTheGatewayIsReachedAtBothLoopbackAddresses(t *testing.T) {
	t.Parallel()
	for _, host := range []string{"", "localhost"} {
		listener, err := Options{Host: host}.listen()
		if err != nil {
			t.Fatal(err)
		}
		server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, r.RemoteAddr) })}
		served := make(chan error, 1)
		go func() { served <- server.Serve(listener) }()
		port := strconv.Itoa(listener.Addr().(*net.TCPAddr).Port)
		for _, address := range []string{"127.0.0.1", "::1"} {
			response, err := http.Get("http://" + net.JoinHostPort(address, port))
			if err != nil {
				t.Fatal(err)
			}
			from, err := io.ReadAll(response.Body)
			if caller, _, _ := net.SplitHostPort(string(from)); err != nil || response.Body.Close() != nil || caller != address {
				t.Errorf("called by %s, not %s, %v", from, address, err)
			}
		}
		if err := server.Close(); err != nil {
			t.Error(err)
		}
		if err := <-served; !errors.Is(err, http.ErrServerClosed) {
			t.Error(err)
		}
	}
}

func TestAPortOfAnotherProgramAtOneOfTheLoopbackAddressesIsRefused(t *testing.T) {
	t.Parallel()
	other, err := net.Listen("tcp6", "[::1]:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = other.Close() }()
	if l, err := (Options{Port: other.Addr().(*net.TCPAddr).Port}).listen(); !errors.Is(err, syscall.EADDRINUSE) {
		t.Errorf("it listens on %v, %v", l, err)
	}
}
