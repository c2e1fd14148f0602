package outbound

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"

	"golang.org/x/net/dns/dnsmessage"
)

// nameServer answers the n-th question for an A record with answer(n), and other questions with no record.
func nameServer(t testing.TB, answer func(n int) []string) *net.Resolver {
	t.Helper()
	conn, err := net.ListenPacket("udp", here+":0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for n, buffer := 1, make([]byte, 1500); ; {
			size, from, err := conn.ReadFrom(buffer)
			if err != nil {
				return
			}
			var m dnsmessage.Message
			if err := m.Unpack(buffer[:size]); err != nil || len(m.Questions) != 1 {
				continue
			}
			question := m.Questions[0]
			m.Response, m.RecursionAvailable, m.Additionals = true, true, nil
			if question.Type == dnsmessage.TypeA {
				for _, text := range answer(n) {
					m.Answers = append(m.Answers, dnsmessage.Resource{
						Header: dnsmessage.ResourceHeader{Name: question.Name, Type: dnsmessage.TypeA, Class: dnsmessage.ClassINET},
						Body:   &dnsmessage.AResource{A: netip.MustParseAddr(text).As4()},
					})
				}
				n++
			}
			packed, err := m.Pack()
			if err != nil {
				t.Error(err)
			}
			_, _ = conn.WriteTo(packed, from)
		}
	}()
	t.Cleanup(func() {
		_ = conn.Close()
		<-done
	})
	return &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "udp", conn.LocalAddr().String())
	}}
}

// twoHosts serves two hosts at one port: one may be called; the other may not, and counts its calls.
func twoHosts(t testing.TB) (port string, came *atomic.Int32) {
	t.Helper()
	came = &atomic.Int32{}
	for try := 0; ; try++ {
		private, err := net.Listen("tcp", here+":0")
		if err != nil {
			t.Fatal(err)
		}
		_, port, _ = net.SplitHostPort(private.Addr().String())
		public, err := net.Listen("tcp", "127.0.0.2:"+port)
		if err != nil {
			_ = private.Close()
			if try < 10 { // the port is taken
				continue
			}
			t.Skipf("this machine has no second loopback address: %v", err)
		}
		for listener, h := range map[net.Listener]http.HandlerFunc{
			private: func(http.ResponseWriter, *http.Request) { came.Add(1) },
			public:  func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("public")) },
		} {
			server := &http.Server{Handler: h}
			go func() { _ = server.Serve(listener) }()
			t.Cleanup(func() { _ = server.Close() })
		}
		return port, came
	}
}

func TestANameThatChangesItsAddressReachesNothingPrivate(t *testing.T) {
	t.Parallel()
	port, came := twoHosts(t)
	for name, c := range map[string]struct {
		answer func(n int) []string
		public []bool // whether each call in turn is answered
	}{
		"public first, then private":  {func(n int) []string { return map[bool][]string{true: {"127.0.0.2"}, false: {here}}[n == 1] }, []bool{true, false, false}},
		"one, then the other":         {func(n int) []string { return []string{[]string{here, "127.0.0.2"}[n%2]} }, []bool{true, false, true, false}},
		"both, the public one first":  {func(int) []string { return []string{"127.0.0.2", here} }, []bool{true, true}},
		"both, the private one first": {func(int) []string { return []string{here, "127.0.0.2"} }, []bool{true, true}},
		"private of other kinds":      {func(int) []string { return []string{here, "10.0.0.1", "169.254.169.254", "0.0.0.0"} }, []bool{false}},
	} {
		guarded := client(t, "127.0.0.2")
		guarded.dialer.Resolver = nameServer(t, c.answer)
		for i, public := range c.public {
			a, err := get(t.Context(), t, guarded, "http://rebind.example:"+port+"/", 100)
			if public && (err != nil || string(a.Body) != "public") || !public && !errors.Is(err, ErrRefused) {
				t.Errorf("%s, call %d: %+v, %v", name, i+1, a, err)
			}
			if err != nil && strings.Contains(err.Error(), here) {
				t.Errorf("%s: the error shows what the name resolves to: %v", name, err)
			}
			guarded.Close() // an open connection was checked; without it the next call resolves the name again
		}
	}
	if n := came.Load(); n != 0 {
		t.Errorf("%d calls reached the private host", n)
	}
}

func TestWhereThePublicAddressIsDeadThePrivateOneIsNotTriedInstead(t *testing.T) {
	t.Parallel()
	port, came := twoHosts(t)
	guarded := client(t, "127.0.0.3") // where no server listens
	for _, order := range [][]string{{"127.0.0.3", here}, {here, "127.0.0.3"}} {
		guarded.dialer.Resolver = nameServer(t, func(int) []string { return order })
		a, err := get(t.Context(), t, guarded, "http://dead.example:"+port+"/", 100)
		if err == nil || errors.Is(err, ErrRefused) { // not ErrRefused: the allowed host may answer another time
			t.Errorf("%v: %+v, %v", order, a, err)
		}
	}
	if n := came.Load(); n != 0 {
		t.Errorf("%d calls reached the private host", n)
	}
}

// Otherwise a client could find out which names the installation's name server knows.
func TestANameThatIsRefusedLooksLikeOneThatDoesNotExist(t *testing.T) {
	t.Parallel()
	for what, c := range map[string]struct {
		addresses []string
		deny      []string
	}{
		"no such name": {nil, nil}, "an inner address": {[]string{"10.0.0.1"}, nil}, "this machine": {[]string{here}, nil},
		"a denied name": {[]string{"192.0.2.1"}, []string{"name.example"}},
		"denied names":  {nil, []string{".example"}},
	} {
		guarded, err := New(Config{Deny: c.deny})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(guarded.Close)
		guarded.dialer.Resolver = nameServer(t, func(int) []string { return c.addresses })
		_, err = get(t.Context(), t, guarded, "http://name.example:81/", 100)
		const want = "name.example:81 does not exist or is not allowed to be called: OUTBOUND_ALLOW and OUTBOUND_DENY decide"
		if err == nil || err.Error() != want || !IsUncalled(err) || IsFinal(err) {
			t.Errorf("%s: %v, final %t", what, err, IsFinal(err))
		}
	}
	if _, err := get(t.Context(), t, client(t), "http://10.0.0.1/", 100); !IsFinal(err) || !IsUncalled(err) {
		t.Errorf("an address: %v", err)
	}
}

// disguised has ways to write the address of this machine or of its neighbours.
var disguised = []string{
	"127.0.0.1", "127.0.0.1.", "127.1", "127.0.1", "2130706433", "017700000001", "0x7f000001", "0x7f.0.0.1", "0177.0.0.1", "127.0.0.0x1",
	"0x7f.1", "00127.0.0.1", "127.000.000.001", "4294967295", "0", "0.0.0.0", "00", "0x0", "localhost", "LOCALHOST", "localhost.", "ip6-localhost",
	"[::1]", "[::]", "[0:0:0:0:0:0:0:1]", "[::ffff:127.0.0.1]", "[::ffff:7f00:1]", "[::127.0.0.1]", "[::ffff:0:127.0.0.1]",
	"[64:ff9b::127.0.0.1]", "[64:ff9b:1::7f00:1]", "[2002:7f00:1::]", "[2001:0:7f00:1::]", "[fe80::1]", "[::1%25lo]", "[fe80::1%25lo]",
	"①②⑦.⓪.⓪.①", "１２７.０.０.１", "127。0。0。1", "ⓛocalhost", "localhoſt",
	"10.0.0.1", "172.16.0.1", "192.168.0.1", "169.254.169.254", "0xa9fea9fe", "2852039166", "[fd00:ec2::254]", "100.100.100.200", "168.63.129.16",
	"user@127.0.0.1", "example.org@127.0.0.1", "127.0.0.%31", "%31%32%37.0.0.1", "127.0.0.1%00.example.org", "127.0.0.1%2f.example.org",
	"example.org\\@127.0.0.1", "[127.0.0.1]", "127.0.0.1%0d%0aX:y",
}

func TestNoDisguiseReachesThisMachine(t *testing.T) {
	t.Parallel()
	var came atomic.Int32
	url := serve(t, func(http.ResponseWriter, *http.Request) { came.Add(1) })
	port := url[strings.LastIndex(url, ":"):]
	names := nameServer(t, func(int) []string { return []string{here} }) // for any question
	c := client(t)
	c.dialer.Resolver = names
	for _, host := range disguised {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+host+port+"/", http.NoBody)
		if err != nil {
			continue // not even a URL
		}
		if a, err := c.Do(r, 100); err == nil {
			t.Errorf("%s: %+v", host, a)
		}
		// The same without the check of the URL. The system's resolver reads numbers as C does.
		for _, resolver := range []*net.Resolver{names, net.DefaultResolver} {
			if resolver == net.DefaultResolver && checkHost(host) == nil {
				continue // the system's resolver would query the network
			}
			bare := client(t)
			bare.dialer.Resolver = resolver
			if conn, err := bare.dial(t.Context(), "tcp", strings.Trim(host, "[]")+port); err == nil {
				_ = conn.Close()
				t.Errorf("%s is connected to", host)
			}
			if conn, err := bare.dial(t.Context(), "tcp", host+port); err == nil {
				_ = conn.Close()
				t.Errorf("%s is connected to", host)
			}
		}
	}
	if n := came.Load(); n != 0 {
		t.Errorf("%d calls came", n)
	}
}
