// Package freeport finds ports for servers that are started later, by another process, or again after a kill.
package freeport

import (
	"errors"
	"net"
	"os"
	"strconv"
	"sync"
)

// Linux assigns the ports of outgoing connections, and of servers that listen on any port, from 32768 on: a port
// there may be taken before its server uses it.
const lowest, end = 10_000, 32_000

var (
	mu   sync.Mutex
	next = lowest + os.Getpid()%1000*20 // far from the ports of a process that was started at the same time
)

// Pick returns a free port of 127.0.0.1, a different one at each call.
func Pick() (int, error) {
	mu.Lock()
	defer mu.Unlock()
	for range end - lowest {
		port := next
		if next++; next == end {
			next = lowest
		}
		if l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port))); err == nil {
			return port, l.Close()
		}
	}
	return 0, errors.New("there is no free port")
}

// For picks a port for a test.
func For(t interface {
	Helper()
	Fatal(...any)
},
) string {
	t.Helper()
	port, err := Pick()
	if err != nil {
		t.Fatal(err)
	}
	return strconv.Itoa(port)
}
