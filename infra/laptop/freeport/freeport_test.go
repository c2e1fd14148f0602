package freeport_test

import (
	"net"
	"testing"

	"github.com/jobweaver/jobweaver/infra/laptop/freeport"
)

// Each port is picked once before all were picked, and no port in use is picked.
func TestEachPortIsFreeAndAnother(t *testing.T) {
	t.Parallel()
	given := map[string]bool{}
	for range 1000 {
		port := freeport.For(t)
		if given[port] {
			t.Fatalf("%s is given twice", port)
		}
		given[port] = true
		l, err := net.Listen("tcp", "127.0.0.1:"+port)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = l.Close() })
	}
}
