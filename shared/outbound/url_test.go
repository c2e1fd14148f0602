package outbound_test

import (
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/jobweaver/jobweaver/shared/outbound"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestAURLIsCheckedAsFarAsItCanBe(t *testing.T) {
	t.Parallel()
	for _, good := range []string{
		"http://example.org", "https://example.org/a?b=c&d=%20", "HTTPS://EXAMPLE.ORG:8443/", "https://example.org./",
		"http://127.0.0.1/", "http://[::1]:8080/", "http://[::ffff:127.0.0.1]/", "http://192.0.2.1:1/", // the dialer decides about addresses
		"https://xn--bcher-kva.example/", "http://localhost", "http://a_b.example/",
		"http://0x.example/", "http://1.example/", "http://example.org:/", "https://example.org/@b",
		"https://example.org/" + strings.Repeat("x", 2000-len("https://example.org/")),
	} {
		if err := outbound.CheckURL(good); err != nil {
			t.Errorf("%s %v", good, err)
		}
	}
	for _, bad := range []string{
		"", "example.org", "//example.org/", "/a", "ftp://example.org/", "file:///etc/passwd", "gopher://example.org/", "http:", "http://",
		"http:example.org", "http:/example.org", "http:///a", "http://:80/", "javascript:alert(1)", "unix:///run/x", "http+unix://x/",
		"http://a@example.org/", "http://a:b@example.org/", "http://@example.org/", "http://example.org@127.0.0.1/",
		"http://example.org:80@127.0.0.1/", "http://a:@b@127.0.0.1/", "http://example.org\\@127.0.0.1/", "http://127.0.0.1\\@example.org/",
		"http://example.org#@127.0.0.1/", "http://example.org/#a", "http://example.org/#",
		"https://bücher.example/", "http://ⓛocalhost/", "http://a.0%80/", "http://127。0。0。1/", "http://127.0.0.%31/", "http://%31%32%37.0.0.1/", "http://127%2e0.0.1/", "http://example.org%00.x/", "http://example.org%2f@x/",
		"http://[fe80::1%25eth0]/", "http://[fe80::1%eth0]/", "http://[::1/", "http://::1/", "http://[127.0.0.1]x/", "http://[example.org]/",
		"http://[v1.a]/", "http://[::ffff:127.0.0.1.]/", "http://[]/",
		"http://2130706433/", "http://0x7f000001/", "http://0x7f.0.0.1/", "http://0177.0.0.1/", "http://017700000001/", "http://127.1/",
		"http://127.0.1/", "http://127.0.0.1./", "http://1/", "http://0/", "http://0x/", "http://127.0.0.0x1/", "http://127.0.0.01/",
		"http://256.0.0.1/", "http://1.2.3.4.5/", "http://example.1/", "http://127.0.0.1.:80/", "http://.../", "http://./",
		"http://example.org:0/", "http://example.org:65536/", "http://example.org:a/", "http://example.org:-1/", "http://example.org:+80/",
		"http://exa mple.org/", "http://example.org /", " http://example.org/", "http://example.org/\x00", "http://example.org/\r\nX: y", "http://exam\tple.org/",
		"https://example.org/" + strings.Repeat("x", 2001-len("https://example.org/")),
	} {
		if err := outbound.CheckURL(bad); err == nil {
			t.Errorf("%q passes", bad)
		}
	}
}

func TestSomeHeadersAreNotTheRequesters(t *testing.T) {
	t.Parallel()
	for name, value := range map[string]string{
		"Authorization": "Bearer abc", "X-Tenant": "a b", "accept": "application/json", "Cookie": "a=b", "X-Empty": "", "Cell": "1",
		"X-Long": strings.Repeat("x", 4096),
	} {
		if err := outbound.CheckHeader(name, value); err != nil {
			t.Errorf("%s %v", name, err)
		}
	}
	for name, value := range map[string]string{
		"Host": "", "host": "", "Content-Length": "1", "CONTENT_LENGTH": "1", "Content-Type": "text/html", "Transfer-Encoding": "chunked", "Transfer_Encoding": "x",
		"Connection": "close", "Keep-Alive": "1", "Upgrade": "websocket", "TE": "trailers", "Trailer": "a", "Expect": "100-continue",
		"Proxy-Authorization": "x", "Proxy-Connection": "x", "proxy_x": "", "ce-id": "1", "CE-Type": "a", "ce_id": "1", "Webhook-Id": "1",
		"webhook-signature": "v1,x", "Webhook_Signature": "v1,x", "X-Callback-Secret": "x", "x_callback_url": "x", "traceparent": "x", "X-Trace-Id": "x",
		"": "x", "a b": "x", "a:b": "x", ":authority": "x", "a\r\nb": "x", "ä": "x", "a\x00": "x", strings.Repeat("a", 101): "x",
		"X-A": "a\r\nHost: b", "X-B": "a\nb", "X-C": "a\x00", "X-D": "a\tb", "X-E": "ä", "X-F": "\x7f", "X-G": strings.Repeat("x", 4097),
	} {
		if err := outbound.CheckHeader(name, value); err == nil {
			t.Errorf("%q: %q passes", name, value)
		}
	}
}
