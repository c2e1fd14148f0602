package outbound

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"testing"
)

// The installation's own sink and services are not called by any name, whatever OUTBOUND_ALLOW contains.
func TestOurOwnServicesAreNotCalledWhateverIsAllowed(t *testing.T) {
	t.Parallel()
	came := make(chan string, 10)
	u, err := url.Parse(serve(t, func(_ http.ResponseWriter, r *http.Request) { came <- r.Host }))
	if err != nil {
		t.Fatal(err)
	}
	port := u.Port()
	for name, c := range map[string]struct {
		deny, own []string
		host      string
		refused   bool
	}{
		"by its address":                  {nil, []string{here + ":" + port}, here, true},
		"by its mapped address":           {nil, []string{here + ":" + port}, "[::ffff:127.0.0.1]", true},
		"another service of its machine":  {nil, []string{here + ":1"}, here, false},
		"by its name":                     {nil, []string{"sink.example:" + port}, "sink.example", true},
		"by its name in other letters":    {nil, []string{"sink.example"}, "SINK.example.", true},
		"by another name of its address":  {nil, []string{"sink.example"}, "other.example", true},
		"by the address of its name":      {nil, []string{"sink.example:" + port}, here, true},
		"by its name, another port":       {nil, []string{"sink.example:1"}, "sink.example", false},
		"a network":                       {[]string{"127.0.0.0/8"}, nil, here, true},
		"an address":                      {[]string{here}, nil, "other.example", true},
		"a suffix":                        {[]string{".example"}, nil, "any.name.example", true},
		"the suffix itself":               {[]string{".sink.example"}, nil, "sink.example", true},
		"a suffix of letters, no label":   {[]string{".ample"}, nil, "sink.example", false},
		"a name that would be completed":  {[]string{".sink.example"}, nil, "outcome", true},
		"a name of one label, no suffix":  {[]string{"sink.example:1"}, nil, "outcome", false},
		"a name that is none of the list": {[]string{"10.0.0.0/8"}, nil, "other.example", false},
	} {
		c2, err := New(Config{Allow: []string{"127.0.0.0/8"}, Deny: c.deny, Own: c.own})
		if err != nil {
			t.Fatal(err)
		}
		c2.dialer.Resolver = nameServer(t, func(int) []string { return []string{here} })
		_, err = get(t.Context(), t, c2, "http://"+c.host+":"+port+"/", 100)
		if (err != nil) != c.refused || c.refused && !errors.Is(err, ErrRefused) {
			t.Errorf("%s: %v", name, err)
		}
		if !c.refused {
			<-came
		}
		c2.Close()
	}
	if len(came) != 0 {
		t.Errorf("%s was called", <-came)
	}
}

func TestWithoutANameServerNothingIsCalledThatCouldBeOurs(t *testing.T) {
	t.Parallel()
	d, err := newDenied(Config{Own: []string{"sink.example"}})
	if err != nil {
		t.Fatal(err)
	}
	to := netip.MustParseAddrPort("10.0.0.1:80")
	dead := &net.Resolver{PreferGo: true, Dial: func(context.Context, string, string) (net.Conn, error) {
		return nil, errors.New("no name server")
	}}
	if _, err := d.address(t.Context(), dead, to); !errors.Is(err, errUnresolved) {
		t.Errorf("nothing is known of the name: %v", err)
	}
	if own, err := d.address(t.Context(), nameServer(t, func(int) []string { return []string{"10.0.0.1"} }), to); !own || err != nil {
		t.Errorf("the name is known: %v, %v", own, err)
	}
	d.until = d.until.Add(-2 * resolvedFor)
	if own, err := d.address(t.Context(), dead, to); !own || err != nil {
		t.Errorf("the name was known: %v, %v", own, err)
	}
}

func TestAWrongPlaceToDenyIsNamed(t *testing.T) {
	t.Parallel()
	for _, bad := range []string{"", "a b", "http://sink", "sink:0", "sink:x", ".", "..", ".suffix:80"} {
		_, err := New(Config{Deny: []string{bad}})
		if err == nil || !strings.HasPrefix(err.Error(), fmt.Sprintf("OUTBOUND_DENY: %q ", bad)) {
			t.Errorf("%q: %v", bad, err)
		}
	}
}
