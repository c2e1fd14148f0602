package gateway

import "testing"

func FuzzTraceOfParent(f *testing.F) {
	f.Add("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")
	f.Add("ff-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-x")
	f.Fuzz(func(t *testing.T, header string) {
		id, ok := traceOfParent(header)
		if !ok {
			return
		}
		if again, ok := traceOfParent("00-" + header[3:35] + "-b7ad6b7169203331-01"); !ok || again != id {
			t.Errorf("%q gives %s, and again %s", header, id, again)
		}
	})
}
