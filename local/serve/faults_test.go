package serve_test

import (
	"net"
	"net/http"
	"strings"
	"syscall"
	"testing"
)

// It is stopped while it migrates or has just begun to, and while it wires each of some functions.
func TestAProcessThatIsStoppedWhileItStartsEndsWithoutAnError(t *testing.T) {
	long(t)
	database := server(t).URL()
	for range 2 {
		p := start(t, database, "")
		p.until("it answers", func() bool {
			status, _ := p.get("/health/liveness")
			return status == http.StatusOK
		})
		if code := p.stop(syscall.SIGTERM); code != 0 {
			t.Errorf("stopped early, it exits with %d", code)
		}
	}
	for _, function := range []string{"gateway", "dispatch", "runjob", "pull"} {
		p := start(t, database, "", processEnv+"_STOP_AT="+function)
		<-p.ended
		if code := p.cmd.ProcessState.ExitCode(); code != 0 {
			t.Errorf("stopped at %s, it exits with %d: %s", function, code, p.text())
		}
	}
}

func TestAPortInUseIsNamedBeforeAnythingElseHappens(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	_, port, _ := net.SplitHostPort(listener.Addr().String())
	p := start(t, "postgres://nobody@127.0.0.1:1/none", "", "PORT="+port)
	<-p.ended
	if code := p.cmd.ProcessState.ExitCode(); code != 1 || !strings.Contains(p.text(), "HOST and PORT: ") {
		t.Errorf("it exits with %d: %s", code, p.text())
	}
}
