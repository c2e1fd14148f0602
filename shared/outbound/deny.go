package outbound

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// resolvedFor is how long the addresses of a denied name are used before it is looked up again.
const resolvedFor = 10 * time.Second

// denied are the targets that no URL of a request may reach, whatever OUTBOUND_ALLOW contains: our own services. A name
// is matched as the URL has it and by the addresses that it resolves to, since another name may resolve to them, too.
type denied struct {
	networks []netip.Prefix
	places   []netip.AddrPort
	names    []deniedName
	suffixes []string // with their leading dot

	mu       sync.Mutex
	resolved map[string][]netip.Addr // by host
	until    time.Time
}

type deniedName struct {
	host string
	port uint16 // 0: any
}

func newDenied(cfg Config) (*denied, error) {
	d := &denied{resolved: map[string][]netip.Addr{}}
	for _, text := range slices.Concat(cfg.Deny, cfg.Own) {
		if text = strings.TrimSpace(text); !d.add(text) {
			return nil, fmt.Errorf("OUTBOUND_DENY: %q is no network, address, name, .suffix, address:port or name:port", text)
		}
	}
	return d, nil
}

func (d *denied) add(text string) bool {
	if network, err := netip.ParsePrefix(text); err == nil {
		if network.Addr().Is4In6() { // it is compared with unmapped addresses
			network = netip.PrefixFrom(network.Addr().Unmap(), network.Bits()-96)
		}
		d.networks = append(d.networks, network)
		return network.IsValid()
	}
	host, port := text, uint16(0)
	if before, after, err := net.SplitHostPort(text); err == nil {
		n, err := strconv.ParseUint(after, 10, 16)
		if err != nil || n == 0 {
			return false
		}
		host, port = before, uint16(n)
	}
	addr, err := netip.ParseAddr(host)
	addr = plainAddr(addr)
	switch host = plainHost(host); {
	case err == nil && port != 0:
		d.places = append(d.places, netip.AddrPortFrom(addr, port))
	case err == nil:
		d.networks = append(d.networks, netip.PrefixFrom(addr, addr.BitLen()))
	case strings.Trim(host, hostCharacters) != "" || strings.Trim(host, ".") == "":
		return false
	case host[0] == '.':
		d.suffixes = append(d.suffixes, host)
		return port == 0
	default:
		d.names = append(d.names, deniedName{host, port})
	}
	return true
}

func plainHost(host string) string { return strings.ToLower(strings.TrimSuffix(host, ".")) }

// plainAddr returns the address without its zone, with which no network contains it.
func plainAddr(addr netip.Addr) netip.Addr { return addr.Unmap().WithZone("") }

// name reports whether a URL's host is denied. If any suffix is denied, a name of one label is, too: the resolver's
// search list may complete it to a name with that suffix.
func (d *denied) name(host string, port uint16) bool {
	host = plainHost(host)
	if _, err := netip.ParseAddr(host); err == nil {
		return false
	}
	return len(d.suffixes) > 0 && !strings.Contains(host, ".") ||
		slices.ContainsFunc(d.suffixes, func(s string) bool { return strings.HasSuffix("."+host, s) }) ||
		slices.ContainsFunc(d.names, func(n deniedName) bool { return n.host == host && n.isPort(port) })
}

func (n deniedName) isPort(port uint16) bool { return n.port == 0 || n.port == port }

// address reports whether connections to an address are denied.
func (d *denied) address(ctx context.Context, resolver *net.Resolver, to netip.AddrPort) (bool, error) {
	addr := plainAddr(to.Addr())
	if slices.Contains(d.places, netip.AddrPortFrom(addr, to.Port())) ||
		slices.ContainsFunc(d.networks, func(n netip.Prefix) bool { return n.Contains(addr) }) {
		return true, nil
	}
	if len(d.names) == 0 {
		return false, nil
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.resolve(ctx, resolver); err != nil {
		return false, err
	}
	return slices.ContainsFunc(d.names, func(n deniedName) bool {
		return n.isPort(to.Port()) && slices.Contains(d.resolved[n.host], addr)
	}), nil
}

// resolve looks up the denied names. A name that does not exist has no address. If the name server does not answer, the
// earlier addresses hold. Without earlier addresses no call is made, since it could reach a service of ours.
func (d *denied) resolve(ctx context.Context, resolver *net.Resolver) error {
	if time.Now().Before(d.until) {
		return nil
	}
	for _, n := range d.names {
		addrs, err := resolver.LookupNetIP(ctx, "ip", n.host)
		var missing *net.DNSError
		switch {
		case err == nil:
			for i := range addrs {
				addrs[i] = addrs[i].Unmap()
			}
			d.resolved[n.host] = addrs
		case errors.As(err, &missing) && missing.IsNotFound:
			delete(d.resolved, n.host)
		case d.resolved[n.host] == nil:
			return errUnresolved
		}
	}
	d.until = time.Now().Add(resolvedFor)
	return nil
}

var errUnresolved = errors.New("the denied names cannot be resolved now")
