package probe

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// The paths of the probes.
const (
	LivenessPath  = "/health/liveness"
	ReadinessPath = "/health/readiness"
)

const askPatience = 3 * time.Second // many times longer than an answer takes

// AskReady checks whether the function that listens on host and port is ready. Images have neither a shell nor another
// program that could check.
func AskReady(ctx context.Context, host string, port int, overTLS bool) error {
	ctx, cancel := context.WithTimeout(ctx, askPatience)
	defer cancel()
	if port == 0 {
		return errors.New("PORT: 0 is any free port, so the port of the function is unknown")
	}
	scheme := "http"
	if overTLS {
		scheme = "https"
	}
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		host = "127.0.0.1"
		if ip != nil && ip.To4() == nil {
			host = "::1"
		}
	}
	at := scheme + "://" + net.JoinHostPort(host, strconv.Itoa(port)) + ReadinessPath
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, at, http.NoBody)
	if err != nil {
		return err
	}
	// The certificate has other names than this address, and the request has no secret.
	client := &http.Client{Transport: &http.Transport{
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true, MinVersion: tls.VersionTLS12}, DisableKeepAlives: true,
	}}
	res, err := client.Do(req)
	if err != nil {
		return err
	}
	defer func() { _ = res.Body.Close() }()
	var answer struct{ Status, Reason string }
	err = json.NewDecoder(io.LimitReader(res.Body, 4<<10)).Decode(&answer)
	if res.StatusCode == http.StatusOK && err == nil {
		return nil
	}
	return fmt.Errorf("%s: %s", res.Status, strings.TrimSpace(answer.Status+" "+answer.Reason))
}

// Answer answers a probe: 200, or 503 with the reason.
func Answer(w http.ResponseWriter, err error) { answer(w, err, nil) }

// AnswerFor answers a probe of a process with several functions: 503 with the reason of the first, by name, of those
// that needed has an error for. The answer has the states of all.
func AnswerFor(w http.ResponseWriter, needed, states map[string]error) {
	shown := map[string]string{}
	for name, err := range states {
		shown[name] = up
		if err != nil {
			shown[name] = err.Error()
		}
	}
	for _, name := range slices.Sorted(maps.Keys(needed)) {
		if err := needed[name]; err != nil {
			answer(w, fmt.Errorf("%s: %w", name, err), shown)
			return
		}
	}
	answer(w, nil, shown)
}

const up = "UP"

func answer(w http.ResponseWriter, err error, functions map[string]string) {
	body := struct {
		Status    string            `json:"status"`
		Reason    string            `json:"reason,omitempty"`
		Functions map[string]string `json:"functions,omitempty"`
	}{Status: up, Functions: functions}
	status := http.StatusOK
	if err != nil {
		body.Status, body.Reason = "DOWN", err.Error()
		status = http.StatusServiceUnavailable
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body) // the client may have gone
}
