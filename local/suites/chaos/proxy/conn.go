package proxy

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// conn is a client's connection and the proxy's own to the server.
type conn struct {
	link             *Link
	client, upstream *net.TCPConn
	once             sync.Once
	over             chan struct{} // closed by reset
	tainted          atomic.Bool   // bytes are missing: the connection must be reset when the fault ends
	committing       atomic.Bool   // the next answer answers a COMMIT
}

func newConn(link *Link, client, upstream *net.TCPConn) *conn {
	return &conn{link: link, client: client, upstream: upstream, over: make(chan struct{})}
}

func (c *conn) reset() {
	c.once.Do(func() {
		close(c.over)
		reset(c.client)
		reset(c.upstream)
	})
}

// run forwards both ways until both have ended. begun was already read from the client.
func (c *conn) run(begun []byte) {
	var both sync.WaitGroup
	both.Go(func() { c.pump(c.client, c.upstream, true, begun) })
	both.Go(func() { c.pump(c.upstream, c.client, false, nil) })
	both.Wait()
	c.reset()
}

// pump forwards one way. At the end of the stream it ends the other connection's stream likewise.
func (c *conn) pump(from, to *net.TCPConn, up bool, begun []byte) {
	buffer := make([]byte, 32<<10)
	chunk := begun
	for {
		if len(chunk) > 0 && !c.forward(chunk, to, up) {
			c.reset()
			return
		}
		n, err := from.Read(buffer)
		chunk = buffer[:n]
		if err == nil {
			continue
		}
		if n > 0 && !c.forward(chunk, to, up) || c.ended() {
			c.reset()
			return
		}
		if _, ok := c.await(up); ok {
			_ = to.CloseWrite()
		}
		return
	}
}

// forward sends one chunk as the link's fault permits; false: the connection is to be reset.
func (c *conn) forward(chunk []byte, to *net.TCPConn, up bool) bool {
	f, ok := c.await(up)
	if !ok {
		return false
	}
	if f.Delay > 0 && !c.pause(f.Delay) {
		return false
	}
	if up && f.LoseCommit && holdsCommit(chunk) {
		c.committing.Store(true)
	}
	if !up && c.committing.Load() {
		return false
	}
	if !up && f.DropDown {
		c.tainted.Store(true)
		return true
	}
	if !up && c.tainted.Load() {
		return f.HalfClose // the client's stream has ended, so the answer is dropped
	}
	_, err := to.Write(chunk)
	return err == nil
}

// await waits while the link stalls this way, and returns its fault; false: the connection was reset.
func (c *conn) await(up bool) (Fault, bool) {
	for {
		f, changed := c.link.now()
		if stalls := up && f.StallUp || !up && f.StallDown; !stalls {
			return f, !c.ended()
		}
		select {
		case <-changed:
		case <-c.over:
			return f, false
		}
	}
}

func (c *conn) pause(d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-c.over:
		return false
	}
}

func (c *conn) ended() bool {
	select {
	case <-c.over:
		return true
	default:
		return false
	}
}

// The forms in which pgx sends COMMIT: as text, and as the name of a prepared statement.
var commits = [][]byte{[]byte("commit\x00"), []byte(preparedAs("commit"))}

func preparedAs(sql string) string {
	digest := sha256.Sum256([]byte(sql))
	return "stmtcache_" + hex.EncodeToString(digest[:24])
}

func holdsCommit(chunk []byte) bool {
	for _, form := range commits {
		if bytes.Contains(chunk, form) {
			return true
		}
	}
	return false
}
