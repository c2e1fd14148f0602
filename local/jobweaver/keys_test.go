package main

import (
	"context"
	"crypto/x509"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	gatewayfunc "github.com/jobweaver/jobweaver/functions/gateway"
	"github.com/jobweaver/jobweaver/local/jobweaver/cli"
	"github.com/jobweaver/jobweaver/migrations"
	"github.com/jobweaver/jobweaver/shared/apidb"
	"github.com/jobweaver/jobweaver/shared/apikey"
	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/kafkatest"
	"github.com/jobweaver/jobweaver/shared/pgtest"
)

func TestMain(m *testing.M) {
	if os.Getenv(processEnv) != "" {
		main()
		return
	}
	pgtest.Main(m, kafkatest.IgnoreSarama()) // the embedded broker counts its groups by it
}

func TestEachKeysCommandSendsOneRequest(t *testing.T) {
	made := `{"keyId":"k1","key":"jw_k1_secret","name":"shop"}`
	revoked := `{"keyId":"k2","ownerId":"acme","name":"old \u001b[31m","roles":["submit","read"],"expiresAt":"2026-01-02T03:04:05Z",
		"revokedAt":"2026-01-01T00:00:00Z"}`
	answers := map[string]string{
		"GET /api/webhook-secrets": `{"ownerId":"acme","end":["whsec_e1","whsec_e2\u001b[31m"],"call":["whsec_c"]}`,
		"POST /api/keys":           made, "POST /api/keys/k1/rotate": made, "DELETE /api/keys/k1": made,
		"GET /api/keys": `{"keys":[` + made + `,` + revoked + `],"nextCursor":"k2"}`,
		"GET /api/me":   `{"actor":"key:k1","ownerId":"acme","roles":["submit","read"],"installation":false}`,
	}
	for args, c := range map[string]struct{ asked, body, printed string }{
		"keys create shop": {"POST /api/keys", `{"name":"shop","roles":["submit","read"]}`, "jw_k1_secret\n"},
		"keys create shop --owner acme --role operate": {
			"POST /api/keys", `{"name":"shop","ownerId":"acme","roles":["operate"]}`, "jw_k1_secret\n",
		},
		"keys rotate k1 --overlap 90s":         {"POST /api/keys/k1/rotate", `{"overlapSeconds":90}`, "jw_k1_secret\n"},
		"keys rotate k1":                       {"POST /api/keys/k1/rotate", `{"overlapSeconds":86400}`, "jw_k1_secret\n"},
		"keys revoke k1":                       {"DELETE /api/keys/k1", "", "k1 is revoked"},
		"keys list --owner acme --cursor k0":   {"GET /api/keys?cursor=k0&ownerId=acme", "", "more: --cursor k2"},
		"keys list":                            {"GET /api/keys?", "", "k2   acme   submit,read  revoked"},
		"keys me":                              {"GET /api/me", "", "key:k1  owner acme  roles submit,read"},
		"webhook-secrets call":                 {"GET /api/webhook-secrets", "", "whsec_c\n"},
		"webhook-secrets end --owner a&b":      {"GET /api/webhook-secrets?ownerId=a%26b", "", "whsec_e1\nwhsec_e2"},
		"keys create shop -o json --role read": {"POST /api/keys", `{"name":"shop","roles":["read"]}`, `"keyId": "k1"`},
	} {
		g := newGateway(t, answers)
		out, err := run(t, "", strings.Fields(args)...)
		if err != nil || len(g.asked) != 1 || g.asked[0] != c.asked || string(g.body) != c.body {
			t.Errorf("%s: %v, asked %q with %s", args, err, g.asked, g.body)
		}
		if !strings.Contains(out, c.printed) || strings.Contains(out, "\x1b") {
			t.Errorf("%s: printed %q", args, out)
		}
	}
	for _, args := range []string{"keys rotate", "keys revoke", "keys create", "keys create a --expires-in soon", "webhook-secrets", "webhook-secrets all"} {
		g := newGateway(t, answers)
		if _, err := run(t, "", strings.Fields(args)...); err == nil || len(g.asked) > 0 {
			t.Errorf("%s: %v, asked %q", args, err, g.asked)
		}
	}
}

func TestListedKeysFitOnALine(t *testing.T) {
	newGateway(t, map[string]string{"GET /api/keys": `{"keys":[{"keyId":"le2akea4swkq","ownerId":"acme","roles":["submit","read"],
		"name":"a shop","expiresAt":"2026-01-02T03:04:05Z","lastUsedAt":"2026-01-02T03:04:05Z"}]}`})
	out, err := run(t, "", "keys", "list")
	for row := range strings.Lines(out) {
		if len(row) > 80 {
			t.Errorf("%d columns: %s", len(row), row)
		}
	}
	if err != nil || !strings.Contains(out, "2026-01-0") {
		t.Errorf("got %q, %v", out, err)
	}
}

// The first steps of an installation, on a gateway with authentication.
func TestFirstKeyOfAnInstallationManagesTheOthers(t *testing.T) {
	at := pgtest.Database(t, migrations.API)
	store, err := apidb.Open(t.Context(), pgtest.As(at, gatewayfunc.Name))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(store.Close)
	f, err := gatewayfunc.New(gatewayfunc.Config{Auth: gatewayfunc.AuthOn, Queues: []string{"default"}}, store)
	if err != nil {
		t.Fatal(err)
	}
	host := f.Host()
	server := httptest.NewServer(host.HTTP)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		ended <- host.Run(ctx, func(context.Context, []jobevent.Item) error { return nil })
	}()
	t.Cleanup(func() {
		server.Close()
		stop()
		host.HTTPEnded()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	t.Setenv("JOBWEAVER_URL", server.URL)
	do := func(key string, args ...string) string {
		t.Helper()
		t.Setenv("JOBWEAVER_API_KEY", key)
		out, err := run(t, "", args...)
		if err != nil {
			t.Errorf("%v: %v", args, err)
		}
		return strings.TrimSpace(out)
	}
	t.Setenv("DATABASE_URL", "")
	if _, err := run(t, "", "keys", "bootstrap"); err == nil || !strings.Contains(err.Error(), "DATABASE_URL") {
		t.Errorf("without a database: %v", err)
	}
	mounted := filepath.Join(t.TempDir(), "url") // as in a pod; the gateway's role has the rights for it
	if err := os.WriteFile(mounted, []byte(pgtest.As(at, gatewayfunc.Name)), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("DATABASE_URL_FILE", mounted)
	boss := do("", "keys", "bootstrap", "--name", "first")
	if me := do(boss, "keys", "me"); !strings.Contains(me, "installation true") {
		t.Errorf("the first key is %q", me)
	}
	if done := do(boss, "audit", "--actor", "bootstrap"); strings.Count(done, "key.create") != 1 { // the audit log shows who made the first key
		t.Errorf("audited %s", done)
	}
	shop := do(boss, "keys", "create", "shop", "--owner", "acme", "--role", "read", "--expires-in", "1h")
	parsed, ok := apikey.Parse(shop)
	if me := do(shop, "keys", "me"); !ok || !strings.Contains(me, "owner acme  roles read") {
		t.Errorf("the key %v is %q", parsed, me)
	}
	next := do(boss, "keys", "rotate", parsed.ID(), "--overlap", "1h")
	do(shop, "list")
	do(next, "list")
	do(boss, "keys", "revoke", parsed.ID())
	t.Setenv("JOBWEAVER_API_KEY", shop)
	if _, err := run(t, "", "list"); err == nil || !strings.Contains(err.Error(), "401") {
		t.Errorf("a revoked key: %v", err)
	}
	if all := do(boss, "keys", "list"); !strings.Contains(all, "first") || strings.Count(all, "acme") != 2 || !strings.Contains(all, "revoked") {
		t.Errorf("listed %s", all)
	}
	if done := do(boss, "audit", "--action", "key.rotate"); !strings.Contains(done, "key/"+parsed.ID()) {
		t.Errorf("audited %s", done)
	}
}

func TestFirstKeyNeedsTheGatewaysDatabase(t *testing.T) {
	t.Setenv("DATABASE_URL", pgtest.As(pgtest.Database(t, migrations.API), "notify"))
	_, err := run(t, "", "keys", "bootstrap")
	if err == nil || !strings.Contains(cli.Advice(err), "the gateway's role") {
		t.Errorf("by another role: %v", err)
	}
	t.Setenv("DATABASE_URL", pgtest.Database(t, migrations.Worker))
	if _, err := run(t, "", "keys", "bootstrap"); err == nil || !strings.Contains(err.Error(), "the gateway's database") {
		t.Errorf("got %v", err)
	}
}

func TestFirstKeyIsWrittenIntoTheSchemaOfTheInstallation(t *testing.T) {
	at, layout := pgtest.Database(t, migrations.Worker), migrations.Layout{Installation: "shop", Schemas: true}
	urls, err := layout.Ensure(t.Context(), at)
	if err != nil {
		t.Fatal(err)
	}
	for _, set := range []migrations.Set{layout.Of(migrations.API), layout.Of(migrations.Scheduler)} {
		if err := migrations.Up(t.Context(), urls.Of(set.Functions[0]), set, nil); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("DATABASE_URL", at)
	t.Setenv("INSTALLATION", "shop")
	t.Setenv("DATABASE_SCHEMAS", "true")
	if key, err := run(t, "", "keys", "bootstrap"); err != nil || !strings.HasPrefix(key, "jw_") {
		t.Errorf("got %q, %v", key, err)
	}
	t.Setenv("INSTALLATION", "shop-eu")
	if _, err := run(t, "", "keys", "bootstrap"); err == nil || !strings.HasPrefix(err.Error(), "INSTALLATION: ") {
		t.Errorf("got %v", err)
	}
}

func TestKeyMayBeInAFileWithALineEnd(t *testing.T) {
	var came string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		came = r.Header.Get("Authorization")
		_, _ = w.Write([]byte("{}"))
	}))
	t.Cleanup(server.Close)
	t.Setenv("JOBWEAVER_URL", server.URL)
	file := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(file, []byte("jw_filed\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ key, file, want string }{
		{"jw_set\n", "", "Bearer jw_set"}, {"", file, "Bearer jw_filed"}, {"jw_set", file, "Bearer jw_set"}, {"", "", ""},
	} {
		t.Setenv("JOBWEAVER_API_KEY", c.key)
		t.Setenv("JOBWEAVER_API_KEY_FILE", c.file)
		if _, err := run(t, "", "keys", "me"); err != nil || came != c.want {
			t.Errorf("%v: sent %q, %v", c, came, err)
		}
	}
	t.Setenv("JOBWEAVER_API_KEY", "")
	t.Setenv("JOBWEAVER_API_KEY_FILE", file+"x")
	if _, err := run(t, "", "keys", "me"); err == nil || !strings.Contains(err.Error(), "JOBWEAVER_API_KEY_FILE") {
		t.Errorf("a file that there is not: %v", err)
	}
}

func TestUnauthorizedCommandNamesTheSetting(t *testing.T) {
	t.Setenv("JOBWEAVER_CA_FILE", "")
	locked := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "who are you?", http.StatusUnauthorized)
	}))
	t.Cleanup(locked.Close)
	known := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "a client certificate is needed", http.StatusForbidden)
	}))
	t.Cleanup(known.Close)
	sealed := httptest.NewTLSServer(http.NotFoundHandler())
	t.Cleanup(sealed.Close)
	for _, c := range []struct{ at, key, want string }{
		{locked.URL, "", "401: Unauthorized: who are you?\nset JOBWEAVER_API_KEY"},
		{locked.URL, "jw_x", "mistyped, expired or revoked"},
		{known.URL, "jw_x", "JOBWEAVER_CERT_FILE and"},
		{sealed.URL, "jw_x", "JOBWEAVER_CA_FILE"},
		{"http://127.0.0.1:1", "jw_x", "JOBWEAVER_URL"},
		{strings.Replace(sealed.URL, "https", "http", 1), "", "400: Bad Request: Client sent an HTTP request to an HTTPS server."},
	} {
		t.Setenv("JOBWEAVER_URL", c.at)
		t.Setenv("JOBWEAVER_API_KEY", c.key)
		_, err := run(t, "", "list")
		if err == nil || !strings.Contains(err.Error()+cli.Advice(err), c.want) {
			t.Errorf("%v: %v%s", c, err, cli.Advice(err))
		}
	}
	if more := cli.Advice(x509.UnknownAuthorityError{}); more == "" || cli.Advice(os.ErrNotExist) != "" {
		t.Errorf("advised %q", more)
	}
}
