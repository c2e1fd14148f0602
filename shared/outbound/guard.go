package outbound

import (
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"code.dny.dev/ssrf"
)

// Config has the addresses that an operator allows beyond public ones, and the targets that are denied.
type Config struct {
	Allow []string `envconfig:"OUTBOUND_ALLOW" desc:"networks, addresses and address:port that are not public but that URLs in requests may reach, such as 10.96.3.7:80,[::1]:8080; name single services, never a whole network with others in it"`
	Deny  []string `envconfig:"OUTBOUND_DENY" desc:"networks, addresses, names and .suffixes of names, the first three also with :port, that no URL in a request may reach, whatever OUTBOUND_ALLOW allows: the installation's own services; K_SINK, KAFKA_BROKERS and DATABASE_URL are always denied"`
	Own   []string `ignored:"true"` // likewise: the services that the process itself uses
}

// guard decides which addresses may be connected to.
type guard struct {
	public   *ssrf.Guardian
	networks []netip.Prefix
	places   []netip.AddrPort
	denied   *denied
}

// alsoPrivate are addresses that no registry reserves although they lead to the host of this machine.
var alsoPrivate = []netip.Prefix{
	netip.MustParsePrefix("168.63.129.16/32"), // Azure's host agent
}

func newGuard(cfg Config) (*guard, error) {
	g := &guard{public: ssrf.New(ssrf.WithAnyPort(), ssrf.WithDeniedV4Prefixes(alsoPrivate...))}
	for _, text := range cfg.Allow {
		text = strings.TrimSpace(text)
		if network, err := netip.ParsePrefix(text); err == nil && !network.Addr().Is4In6() {
			g.networks = append(g.networks, network)
		} else if addr, err := netip.ParseAddr(text); err == nil && addr.Zone() == "" {
			addr = addr.Unmap()
			g.networks = append(g.networks, netip.PrefixFrom(addr, addr.BitLen()))
		} else if place, err := netip.ParseAddrPort(text); err == nil && place.Addr().Zone() == "" && place.Port() != 0 {
			g.places = append(g.places, netip.AddrPortFrom(place.Addr().Unmap(), place.Port()))
		} else {
			return nil, fmt.Errorf("OUTBOUND_ALLOW: %q is not a network (such as 10.0.0.0/8), address or address:port", text)
		}
	}
	var err error
	g.denied, err = newDenied(cfg)
	return g, err
}

// allows reports whether a connection to the address is allowed.
func (g *guard) allows(to netip.AddrPort) bool {
	return g.named(to) || to.Addr().Zone() == "" && g.public.SafeAddr(to.Addr().Unmap()) == nil
}

// deniesName reports whether host:port of a URL is denied by its name.
func (g *guard) deniesName(address string) bool {
	host, text, err := net.SplitHostPort(address)
	port, wrong := strconv.ParseUint(text, 10, 16)
	return err != nil || wrong != nil || g.denied.name(host, uint16(port))
}

// named reports whether OUTBOUND_ALLOW names the address.
func (g *guard) named(to netip.AddrPort) bool {
	addr := to.Addr().Unmap()
	return slices.Contains(g.places, netip.AddrPortFrom(addr, to.Port())) ||
		slices.ContainsFunc(g.networks, func(n netip.Prefix) bool { return n.Contains(addr) })
}

// itself reports whether a connection leads back to this machine by one of its public addresses. Services may listen
// there that a firewall hides from other machines.
func (g *guard) itself(conn net.Conn) bool {
	from, err := netip.ParseAddrPort(conn.LocalAddr().String())
	if err != nil {
		return true
	}
	to, err := netip.ParseAddrPort(conn.RemoteAddr().String())
	return err != nil || g.selfish(from, to)
}

func (g *guard) selfish(from, to netip.AddrPort) bool {
	return from.Addr().Unmap() == to.Addr().Unmap() && !g.named(to)
}
