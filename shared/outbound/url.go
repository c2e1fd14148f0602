package outbound

import (
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"strconv"
	"strings"

	"golang.org/x/net/http/httpguts"
)

const (
	maxURL         = 2000
	hostCharacters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._"
	maxHeaderName  = 100
	maxHeaderValue = 4 << 10
)

// CheckURL returns an error for a URL that cannot be called, as far as that is known without resolving its name. Its
// addresses are checked when a call connects.
func CheckURL(text string) error {
	if len(text) > maxURL {
		return fmt.Errorf("must be at most %d bytes", maxURL)
	}
	if strings.Contains(text, "#") {
		return errors.New("must have no fragment")
	}
	u, err := url.Parse(text)
	if err != nil {
		return errors.New("must be a URL") // without err, which repeats the text
	}
	return checkTarget(u)
}

// checkTarget checks the parts of a URL that decide where a call goes.
func checkTarget(u *url.URL) error {
	host := u.Hostname()
	switch {
	case u.Scheme != "http" && u.Scheme != "https":
		return errors.New("must begin with http:// or https://")
	case host == "" || u.Opaque != "":
		return errors.New("must name a host")
	case u.User != nil:
		return errors.New("must have no user name or password")
	case u.Port() != "" && !isPort(u.Port()):
		return errors.New("must have a port from 1 to 65535")
	}
	return checkHost(host)
}

// checkHost refuses hosts that parsers read differently: escapes, letters that are folded into others, and numbers that
// are addresses in an unusual form (2130706433, 0x7f.1, 127.1).
func checkHost(host string) error {
	if addr, err := netip.ParseAddr(host); err == nil && addr.Zone() == "" {
		return nil
	}
	if strings.Trim(host, hostCharacters) != "" {
		return errors.New("must name a host in plain letters, digits, hyphens and dots (others as xn--…)")
	}
	labels := strings.Split(strings.TrimSuffix(host, "."), ".")
	last := labels[len(labels)-1]
	if strings.Trim(last, "0123456789") == "" || isHex(last) {
		return errors.New("must name a host, or an address in its usual form")
	}
	return nil
}

func isHex(label string) bool {
	digits, found := strings.CutPrefix(strings.ToLower(label), "0x")
	return found && strings.Trim(digits, "0123456789abcdef") == ""
}

func isPort(text string) bool {
	port, err := strconv.ParseUint(text, 10, 16)
	return err == nil && port != 0
}

// CheckHeader returns an error for a header that a job may not send with a call. Headers that decide where a message
// ends or whom it is for, that are signed, or that JobWeaver sets itself are not the requester's to set. An underscore
// counts as a hyphen, because some servers take it for one.
func CheckHeader(name, value string) error {
	if len(name) > maxHeaderName || !httpguts.ValidHeaderFieldName(name) {
		return errors.New("must be named as HTTP allows, by at most 100 letters, digits and hyphens")
	}
	plain := strings.ReplaceAll(strings.ToLower(name), "_", "-")
	switch plain {
	case "host", "content-length", "transfer-encoding", "connection", "keep-alive", "upgrade", "te", "trailer",
		"expect", "http2-settings", "content-type", "content-encoding", "date", "traceparent",
		"tracestate", "x-trace-id", "x-checkpoint", "x-event":
		return fmt.Errorf("must not be %s, which is not the requester's to set", name)
	}
	for _, ours := range []string{"proxy-", "ce-", "webhook-", "x-callback-", "knative-"} {
		if strings.HasPrefix(plain, ours) {
			return fmt.Errorf("must not begin with %s, which is not the requester's to set", ours)
		}
	}
	if len(value) > maxHeaderValue {
		return fmt.Errorf("must be at most %d bytes", maxHeaderValue)
	}
	for i := range len(value) {
		if value[i] < ' ' || value[i] > '~' {
			return errors.New("must be plain ASCII, without control characters")
		}
	}
	return nil
}
