package outbound

import (
	"net"
	"net/netip"
	"strconv"
	"strings"
	"testing"
)

// FuzzAnEntryOfDenyCounts: each accepted entry of OUTBOUND_DENY denies what it names, in each of its forms.
func FuzzAnEntryOfDenyCounts(f *testing.F) {
	for _, text := range []string{
		"10.0.0.0/8", "10.1.2.3/8", "::ffff:10.0.0.0/104", "::ffff:0.0.0.0/90", "1.2.3.4", "::ffff:1.2.3.4", "[::1]:80", "fe80::1%eth0", "[fe80::1%eth0]:80",
		"db", "db:5432", "DB.example.", ".svc.cluster.local", ".svc:80", "db:0", ":80", "..", "a b", " x ", "1.2.3.4.", "[::1]", "a:b:c",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		d, err := newDenied(Config{Deny: []string{text}})
		if err != nil {
			if !strings.HasPrefix(err.Error(), "OUTBOUND_DENY: ") {
				t.Errorf("%q: %v", text, err)
			}
			return
		}
		text = strings.TrimSpace(text)
		host, port := text, uint64(443)
		if before, after, err := net.SplitHostPort(text); err == nil {
			host = before
			port, _ = strconv.ParseUint(after, 10, 16)
		}
		addr, err := netip.ParseAddr(host)
		if network, wrong := netip.ParsePrefix(text); wrong == nil {
			addr, err = network.Addr(), nil
		}
		if err != nil {
			if strings.HasPrefix(host, ".") {
				host = "x" + host
			}
			for _, form := range []string{host, strings.ToUpper(host), strings.TrimSuffix(host, ".") + "."} {
				if plain, err := netip.ParseAddr(plainHost(form)); err == nil { // 1.2.3.4. with a final dot is looked up, not matched
					t.Log(plain)
				} else if !d.name(form, uint16(port)) {
					t.Errorf("%q does not deny %q", text, form)
				}
			}
			return
		}
		mapped := netip.AddrFrom16(addr.As16())
		for _, form := range []netip.Addr{addr, addr.Unmap(), mapped, mapped.WithZone("eth0")} {
			if is, err := d.address(t.Context(), nil, netip.AddrPortFrom(form, uint16(port))); !is || err != nil {
				t.Errorf("%q does not deny %s: %v", text, form, err)
			}
		}
	})
}
