package httpevent_test

import (
	"net/http"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/cloudevents/sdk-go/v2/event"

	"github.com/jobweaver/jobweaver/shared/httpevent"
)

const attributes = `"specversion": "1.0", "id": "1", "source": "/t", "type": "x"`

func TestStructuredData(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]string{
		`{` + attributes + `}`:                                                           ``,
		`{` + attributes + `, "data": {"a": 1.50}}`:                                      `{"a": 1.50}`,
		`{` + attributes + `, "data": null}`:                                             `null`,
		`{` + attributes + `, "data": "text"}`:                                           `"text"`,
		`{` + attributes + `, "data": "text", "datacontenttype": "text/plain"}`:          `text`,
		`{"data": "text", "datacontenttype": "application/json", ` + attributes + `}`:    `"text"`,
		`{` + attributes + `, "data_base64":   "eyJhIjogMX0="}`:                          `{"a": 1}`,
		`{"data_base64": "eyJhIjogMX0=", ` + attributes + `}`:                            `{"a": 1}`,
		`{` + attributes + `, "data_base64": "AAE=", "datacontenttype": "image/x"}`:      "\x00\x01",
		`{` + attributes + `, "data": {}, "datacontenttype": "application/x+json; a=b"}`: `{}`,
	} {
		e, err := httpevent.Structured([]byte(body))
		if err != nil || string(e.Data()) != want || e.ID() != "1" {
			t.Errorf("%s: data %q, %v", body, e.Data(), err)
		}
	}
}

func TestWhatIsNoStructuredEvent(t *testing.T) {
	t.Parallel()
	for _, body := range []string{
		``, `{`, `[]`, `null`, `7`, `{}`, `{` + attributes + `} {}`, `{` + attributes + `, "id": "2"}`,
		`{` + attributes + `, "data": 1, "data_base64": "e30="}`, `{` + attributes + `, "data_base64":1}`,
		`{` + attributes + `, "data_base64": "!"}`, `{` + attributes + `, "time": "noon"}`, `{` + attributes + `, "": 1}`,
		`{` + attributes + `, "ext": {"a": 1}}`, `{` + attributes + `, "x": "` + "\xff" + `"}`,
		strings.Replace(`{`+attributes+`}`, "1.0", "0.3", 1), strings.Replace(`{`+attributes+`}`, `"id": "1"`, `"id": ""`, 1),
		`{"00": 0, "specversion": "0.3", "datacontentencoding": ""}`, strings.Replace(`{`+attributes+`}`, `"1.0"`, `1.0`, 1),
	} {
		if e, err := httpevent.Structured([]byte(body)); err == nil {
			t.Errorf("%s is %s", body, e)
		}
	}
}

// Events that the SDK accepts, or refuses with an unclear error; in both modes if possible.
func TestAttributesAreAsTheSpecificationHasThem(t *testing.T) {
	t.Parallel()
	const id = `"id": "1", "type": "x"`
	for name, c := range map[string]struct{ body, header, value, want string }{
		"a space in the source":    {`{"specversion": "1.0", "source": "/a b", ` + id + `}`, "Ce-Source", "/a%20b", "URI-reference"},
		"a name in capitals":       {`{` + attributes + `, "MyExt": "1"}`, "", "", `"MyExt" must consist of lower-case letters`},
		"an empty name":            {`{` + attributes + `, "": "1"}`, "", "", `"" must consist of lower-case letters`},
		"a fraction":               {`{` + attributes + `, "ext": 1.5}`, "", "", "only integers"},
		"a fraction, negative":     {`{` + attributes + `, "ext": -1e2}`, "", "", "only integers"},
		"an empty subject":         {`{` + attributes + `, "subject": ""}`, "Ce-Subject", "", "subject must not be empty"},
		"data as an attribute":     {"", "Ce-Data", "1", "data is no attribute"},
		"another version":          {`{"specversion": "2.0", "source": "/t", ` + id + `}`, "Ce-Specversion", "2.0", "specversion must be 1.0"},
		"a time in lower case":     {`{` + attributes + `, "time": "2026-11-22t08:00:00z"}`, "Ce-Time", "2026-11-22t08:00:00z", ""},
		"an IRI":                   {`{"specversion": "1.0", "source": "/ü", ` + id + `}`, "Ce-Source", "/%C3%BC", ""},
		"a number and a truth":     {`{` + attributes + `, "ext": -7, "b": true}`, "Ce-Ext", "-7", ""},
		"a subject that is absent": {`{` + attributes + `, "subject": null}`, "", "", ""},
	} {
		errs := map[string]error{}
		if c.body != "" {
			_, errs["structured"] = httpevent.Structured([]byte(c.body))
		}
		if c.header != "" {
			header := http.Header{"Ce-Specversion": {"1.0"}, "Ce-Id": {"1"}, "Ce-Source": {"/t"}, "Ce-Type": {"x"}}
			header[c.header] = []string{c.value}
			_, errs["binary"] = httpevent.Binary(header, []byte("{}"))
		}
		for mode, err := range errs {
			if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
				t.Errorf("%s, %s: %v", name, mode, err)
			}
		}
	}
}

func TestABatchIsAnArray(t *testing.T) {
	t.Parallel()
	if events, err := httpevent.Batch([]byte(` [{}, 1] `)); len(events) != 2 || err != nil {
		t.Error(events, err)
	}
	if events, err := httpevent.Batch([]byte(`[]`)); events == nil || err != nil {
		t.Error(events, err)
	}
	for _, body := range []string{``, `{}`, `null`, `[] []`, `[`, `[{"a": 1, "a": 2}]`, "[\"\xff\"]"} {
		if _, err := httpevent.Batch([]byte(body)); err == nil {
			t.Errorf("%q is a batch", body)
		}
	}
}

func TestBinaryHeadersAreDecodedOnce(t *testing.T) {
	t.Parallel()
	header := func(pairs ...string) http.Header {
		h := http.Header{"Ce-Specversion": {"1.0"}, "Ce-Id": {"1"}, "Ce-Source": {"/t"}, "Ce-Type": {"x"}, "Cookie": {"a", "b"}}
		for i := 0; i < len(pairs); i += 2 {
			h[pairs[i]] = append([]string{}, strings.Split(pairs[i+1], "|")...)
		}
		return h
	}
	for value, want := range map[string]string{
		"a": "a", "%C3%BC": "ü", "100%25": "100%", "%2525": "%25", `"a b"`: "a b", `"a\"b\\"`: `a"b\`, `"`: `"`,
		// What no encoding can have made is as its sender wrote it.
		"10% off": "10% off", "100%": "100%", "%zz": "%zz", "%%41": "%A", "%4": "%4", "%ff": "%ff", "a%41%ff": "a%41%ff",
	} {
		e, err := httpevent.Binary(header("Ce-Id", value), []byte(`{}`))
		if err != nil || e.ID() != want || string(e.Data()) != `{}` || len(e.Extensions()) != 0 {
			t.Errorf("id %s is %q, %v", value, e.ID(), err)
		}
	}
	for name, h := range map[string]http.Header{
		"bad UTF-8": header("Ce-Id", "\xff"), "a subject of bad UTF-8": header("Ce-Subject", "\xff"), "an id twice": header("Ce-Id", "1|2"),
		"two types of content": header("Content-Type", "a/b|c/d"), "an old event": header("Ce-Specversion", "0.3"),
		"a later one": header("Ce-Specversion", "2.0"), "no type": header("Ce-Type", ""), "a bad time": header("Ce-Time", "noon"),
	} {
		if e, err := httpevent.Binary(h, nil); err == nil {
			t.Errorf("%s is %s", name, e)
		}
	}
}

func TestAnExtensionThatIsNotUsedNeverRefusesAnEvent(t *testing.T) {
	t.Parallel()
	for name, values := range map[string][]string{
		"Ce-Note": {`a "q" 5%`}, "Ce-Old": {"gr\xf6\xdfe"}, "Ce-Twice": {"1", "2"}, "Ce-Two-Words": {"1"}, "Ce-": {"1"}, "Ce-Empty": {""},
	} {
		header := http.Header{"Ce-Specversion": {"1.0"}, "Ce-Id": {"1"}, "Ce-Source": {"/t"}, "Ce-Type": {"x"}, "Ce-Kept": {"5%25"}}
		header[name] = values
		e, err := httpevent.Binary(header, []byte(`{}`))
		if err != nil || e.Extensions()["kept"] != "5%" {
			t.Errorf("%s %q: %v, %v", name, values, e.Extensions(), err)
		}
	}
}

// FuzzEvent reads one body in both modes: the result is a valid event or an error, never a panic.
func FuzzEvent(f *testing.F) {
	for _, seed := range []string{
		`{` + attributes + `, "data": {"a": 1}}`, `{` + attributes + `, "data_base64": "e30=", "ext": 7, "time": "2026-11-22T08:00:00Z"}`,
		`{"data_base64":1, "specversion": "0.3", "datacontentencoding": "base64"}`,
		`{"time": "noon", "id": null, "": {}, "dataschema": "%zz"}`, `[]`, `null`,
	} {
		f.Add([]byte(seed), "1", "/t", "application/json", "a=b")
	}
	f.Add([]byte(nil), "%C3%BC", `"a"`, "x", "%")
	f.Fuzz(func(t *testing.T, body []byte, id, source, media, extension string) {
		_, _ = httpevent.Batch(body)
		e, err := httpevent.Structured(body)
		if err == nil && (e.ID() == "" || e.Source() == "" || e.Type() == "" || e.SpecVersion() != event.CloudEventsVersionV1) {
			t.Errorf("%q is an event without a name", body)
		}
		header := http.Header{"Ce-Specversion": {"1.0"}, "Ce-Id": {id}, "Ce-Source": {source}, "Ce-Type": {"x"},
			"Content-Type": {media}, "Ce-Ext": {extension}}
		e, err = httpevent.Binary(header, body)
		if err == nil && (e.ID() == "" || !utf8.ValidString(e.ID()) || string(e.Data()) != string(body)) {
			t.Errorf("%v %q is %s", header, body, e)
		}
	})
}
