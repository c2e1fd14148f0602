package localpostgres

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
)

// logTail is how much of the log's end DiskFull reads.
const logTail = 64 << 10

// DiskFull reports whether the server has met a full disk since it was launched. Clients do not always see that: a
// server that cannot write its WAL ends all connections, and the error is an unexpected EOF.
func (s *Server) DiskFull() bool {
	log, err := os.Open(filepath.Join(s.cfg.Dir, logName))
	if err != nil {
		return false
	}
	defer func() { _ = log.Close() }()
	info, err := log.Stat()
	if err != nil {
		return false
	}
	s.mu.Lock()
	from := max(s.logged, info.Size()-logTail)
	s.mu.Unlock()
	text, err := io.ReadAll(io.NewSectionReader(log, from, logTail))
	return err == nil && bytes.Contains(text, []byte("No space left on device"))
}
