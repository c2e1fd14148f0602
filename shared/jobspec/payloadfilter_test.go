package jobspec_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/jobweaver/jobweaver/shared/jobspec"
)

func TestAFilterByPayloadHasAPathAndAValue(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]jobspec.PayloadFilter{
		"orderId:A-17":                  {Path: []string{"orderId"}, Value: "A-17"},
		"order-id:x":                    {Path: []string{"order-id"}, Value: "x"},
		"customer.id:17":                {Path: []string{"customer", "id"}, Value: "17"},
		"items[0].sku:a:b.c[0]":         {Path: []string{"items", "0", "sku"}, Value: "a:b.c[0]"},
		"['full name']:Ada Lovelace":    {Path: []string{"full name"}, Value: "Ada Lovelace"},
		`a["x.y:z"][2]: ` + "ü":         {Path: []string{"a", "x.y:z", "2"}, Value: " ü"},
		"größe:" + "1e3":                {Path: []string{"größe"}, Value: "1e3"},
		strings.Repeat("n", 253) + ":1": {Path: []string{strings.Repeat("n", 253)}, Value: "1"},
	} {
		got, wrong := jobspec.ReadPayloadFilter(text)
		if wrong != "" || got.Value != want.Value || !slices.Equal(got.Path, want.Path) {
			t.Errorf("%s is %q, %s", text, got, wrong)
		}
	}
	for _, text := range []string{
		"", ":", "a", "a:", ":a", "a..b:1", ".a:1", "a.:1", "a[:1", "a[x]:1", "a[-1]:1", "a[01]:1", "a['x:1", "a[0]b:1", "[0]",
		strings.Repeat("n", 254) + ":1",
	} {
		if got, wrong := jobspec.ReadPayloadFilter(text); wrong == "" || wrong != jobspec.WrongPayloadFilter(text) || got.Path != nil {
			t.Errorf("%s is %q, %s", text, got, wrong)
		}
	}
}
