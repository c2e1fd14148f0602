package yamldoc

import (
	"encoding/json"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/goccy/go-yaml"
)

func TestYAMLKeepsNumbersAndTheOrderOfKeys(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	err := Write(&out, []byte(`{"jobId":"a-1","output":{"big":12345678901234567890,"m":1.10,"none":null,"no":true},
		"exponents":[-1e0,1E3,2.5e-7],"tags":[],
		"payload":{},"steps":[{"type":"LOG","at":"2026-11-22T08:00:00Z"},[1,[2]],"on","x: y\n\u001b[31m"],"last":"NO"}`))
	if err != nil {
		t.Fatal(err)
	}
	want := `jobId: a-1
output:
  big: 12345678901234567890
  m: 1.10
  none: null
  "no": true
exponents:
  - -1.0e+0
  - 1.0e+3
  - 2.5e-7
tags: []
payload: {}
steps:
  - type: LOG
    at: "2026-11-22T08:00:00Z"
  - - 1
    - - 2
  - "on"
  - "x: y\n\u001b[31m"
last: "NO"
`
	if out.String() != want {
		t.Errorf("printed\n%s\nwant\n%s", out.String(), want)
	}
	if err := Write(&out, []byte(`{"a":`)); err == nil {
		t.Error("half an answer was printed")
	}
}

func FuzzYAML(f *testing.F) {
	for _, doc := range []string{
		`{"a":[{"b":[[],{}]},[[{"c":1}]]],"":"","-":"- a","#":"# b"}`, `"text"`, `[]`, `{}`, `null`,
		`-1.5e3`, `-1e0`, `[[["a"]]]`,
		`{"a":"\ud83d\ude00\u2028\u0085\t\r","b":"~","c":"0x1f","d":"1_000","e":".inf","f":"=","g":"<<"}`,
	} {
		f.Add(doc)
	}
	// The parser in this test takes an integer of more than 64 bits for text; others do not.
	long := regexp.MustCompile(`[0-9]{19}`)
	f.Fuzz(func(t *testing.T, doc string) {
		var want any
		if json.Unmarshal([]byte(doc), &want) != nil || long.MatchString(doc) || !jsontext.Value(doc).IsValid() {
			return // jsontext is stricter, for example about a repeated name in an object
		}
		var out strings.Builder
		if err := Write(&out, []byte(doc)); err != nil {
			t.Fatal(err)
		}
		var read any
		if err := yaml.Unmarshal([]byte(out.String()), &read); err != nil {
			t.Fatalf("%q: %v\n%s", doc, err, out.String())
		}
		again, err := json.Marshal(read)
		if err != nil {
			return // an infinity
		}
		var got any
		if err := json.Unmarshal(again, &got); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%q became %s\n%s", doc, again, out.String())
		}
	})
}
