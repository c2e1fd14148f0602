package funchost

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"
)

// healthcheck is the argument by which a function's binary asks the function that runs with the same environment
// whether it is ready: images have no shell, and nothing else that could ask.
const healthcheck = "healthcheck"

const healthcheckPatience = 3 * time.Second // many times what an answer takes

// runHealthcheck is the whole process.
func runHealthcheck(ctx context.Context) error {
	var cfg Config
	for _, part := range []any{&cfg, &cfg.TLS} {
		if err := LoadConfig(part); err != nil {
			return err
		}
	}
	ctx, cancel := context.WithTimeout(ctx, healthcheckPatience)
	defer cancel()
	return cfg.askReady(ctx)
}

func (c Config) askReady(ctx context.Context) error {
	if c.Port == 0 {
		return errors.New("PORT: 0 is any free one, so nobody knows which to ask")
	}
	scheme, host := "http", c.Host
	if c.TLS.CertFile != "" {
		scheme = "https"
	}
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		host = "127.0.0.1"
		if ip != nil && ip.To4() == nil {
			host = "::1"
		}
	}
	at := scheme + "://" + net.JoinHostPort(host, strconv.Itoa(c.Port)) + readinessPath
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, at, nil)
	if err != nil {
		return err
	}
	// Its certificate is for other names than this, and it is told nothing.
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

func wantsHealthcheck() bool { return len(os.Args) == 2 && os.Args[1] == healthcheck }
