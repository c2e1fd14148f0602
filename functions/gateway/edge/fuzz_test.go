package edge

import (
	"errors"
	"net/url"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/uuid"

	"github.com/jobweaver/jobweaver/shared/apierror"
	"github.com/jobweaver/jobweaver/shared/strictjson"
	"github.com/jobweaver/jobweaver/shared/telemetry"
)

// FuzzQuery parses any query as every parameter: each value is returned as it was sent, or refused by its name.
func FuzzQuery(f *testing.F) {
	const trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	for _, s := range []string{
		"type=MAIL&tag=a%20b&limit=200&cursor=01936F3E-5f3e-7cc0-8000-0123456789ab&since=2026-11-22T08:00:00Z&wait=1.5s",
		"last=01936f3e-5f3e-7cc0-8000-0123456789ab.v3", "last=01936f3e-5f3e-7cc0-8000-0123456789ab.v+3.v4", "last=.v1",
		"cursor=urn:uuid:01936f3e-5f3e-7cc0-8000-0123456789ab", "cursor={01936f3e-5f3e-7cc0-8000-0123456789ab}",
		"cursor=01936f3e5f3e7cc080000123456789ab", "limit=-1", "limit=0x10", "limit=1&limit=2", "limit=99999999999999999999",
		"wait=1e9s", "wait=-1s", "wait=60.0000001s", "wait=2562047h", "since=0000-01-01T00:00:00-23:59", "since=2026-11-22",
		"type=%00", "type=%ff", "type=", "%ff=1", "type='%20or%201=1--", "tag=%F0%9F%98%80", ";", "a=%zz", "&&&=",
	} {
		f.Add(s, trace)
	}
	f.Add("", "ff-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-x")
	f.Fuzz(func(t *testing.T, text, traceParent string) {
		checkTraceOf(t, traceParent)
		values, _ := url.ParseQuery(text) // like a request, with the parameters that can be parsed
		q := Query{Values: values}
		texts := []string{q.One("type"), q.One("tag")}
		limit, wait, since := q.Integer("limit", DefaultLimit, 1, MaxLimit), q.Duration("wait"), q.Instant("since")
		cursor := q.Cursor("cursor")
		last, version := q.DeliveryCursor("last")
		if err := q.Close("type", "tag", "limit", "wait", "since", "cursor", "last"); err != nil {
			checkRefusal(t, err)
			return
		}
		for _, s := range texts {
			if !utf8.ValidString(s) || strings.ContainsRune(s, 0) {
				t.Errorf("PostgreSQL cannot compare with %q", s)
			}
		}
		if limit < 1 || limit > MaxLimit || wait < 0 || wait > MaxWait {
			t.Errorf("%q: limit %d, wait %s", text, limit, wait)
		}
		if since != nil && (since.Year() < 0 || since.UTC().Year() > 10_000) {
			t.Errorf("%q: since %s", text, since)
		}
		checkCursor(t, values.Get("cursor"), cursor)
		if id, _, found := strings.Cut(values.Get("last"), ".v"); found || last != uuid.Nil || version != 0 {
			checkCursor(t, id, last)
		}
	})
}

// checkCursor: an id has one form only, except for capitals.
func checkCursor(t *testing.T, text string, id uuid.UUID) {
	t.Helper()
	if text == "" && id != uuid.Nil || text != "" && !strings.EqualFold(text, id.String()) {
		t.Errorf("the cursor %q is read as %s", text, id)
	}
}

func checkRefusal(t *testing.T, err error) {
	t.Helper()
	var refused *apierror.Error
	if !errors.As(err, &refused) || len(refused.Details) == 0 || len(refused.Details) > strictjson.MaxProblems {
		t.Fatalf("got %v", err)
	}
	if slices.ContainsFunc(refused.Details, func(d apierror.Detail) bool {
		return d.Message == "" || !utf8.ValidString(d.Path+d.Message)
	}) {
		t.Errorf("it returned %q", refused.Details)
	}
}

func checkTraceOf(t *testing.T, header string) {
	t.Helper()
	id, ok := telemetry.TraceID(header)
	if !ok {
		return
	}
	if again, ok := telemetry.TraceID("00-" + header[3:35] + "-b7ad6b7169203331-01"); !ok || again != id {
		t.Errorf("%q gives %s, and again %s", header, id, again)
	}
}
