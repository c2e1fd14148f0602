// Package jsontest has the code that the tests of JSON readers share.
package jsontest

import (
	"bytes"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/jobweaver/jobweaver/shared/apierror"
	"github.com/jobweaver/jobweaver/shared/strictjson"
)

// Rewrite writes the same JSON in another form: sorted, without white space, escaped by other rules.
func Rewrite(t testing.TB, doc []byte) []byte {
	d := json.NewDecoder(bytes.NewReader(doc))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		t.Fatalf("encoding/json cannot read it: %v", err)
	}
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatalf("encoding/json cannot write it: %v", err)
	}
	return b
}

// CheckSafe fails the test if jsonb or a client could not decode the JSON.
func CheckSafe(t testing.TB, payload []byte) {
	var v any
	if err := json.Unmarshal(payload, &v); err != nil {
		t.Fatalf("a client cannot decode it: %v", err)
	}
	if !utf8.Valid(payload) || holdsNUL(v) {
		t.Fatalf("PostgreSQL cannot keep %q", payload)
	}
}

func holdsNUL(v any) bool {
	switch v := v.(type) {
	case string:
		return strings.ContainsRune(v, 0)
	case []any:
		for _, e := range v {
			if holdsNUL(e) {
				return true
			}
		}
	case map[string]any:
		for name, e := range v {
			if strings.ContainsRune(name, 0) || holdsNUL(e) {
				return true
			}
		}
	}
	return false
}

// CheckError fails the test if a client could not read the error.
func CheckError(t testing.TB, err error) {
	var e *apierror.Error
	if !errors.As(err, &e) {
		t.Fatalf("got %v", err)
	}
	switch {
	case e.Code == apierror.PayloadTooLarge:
	case e.Code != apierror.InvalidJobRequest || len(e.Details) == 0 || len(e.Details) > strictjson.MaxProblems:
		t.Fatalf("got %#v", e)
	}
	for _, d := range e.Details {
		if d.Message == "" || len(d.Path)+len(d.Message) > 1_000 || !utf8.ValidString(d.Path+d.Message) {
			t.Fatalf("got %#v", d)
		}
	}
}

// Problems returns the problems of an error, sorted and each with its path; empty: there is no error.
func Problems(t testing.TB, err error) string {
	t.Helper()
	if err == nil {
		return ""
	}
	var e *apierror.Error
	if !errors.As(err, &e) || e.Code != apierror.InvalidJobRequest {
		t.Fatalf("got %v", err)
	}
	var parts []string
	for _, d := range e.Details {
		parts = append(parts, d.Path+" "+d.Message)
	}
	slices.Sort(parts)
	return strings.Join(parts, "; ")
}
