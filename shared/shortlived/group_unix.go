//go:build unix

package shortlived

import (
	"os/exec"
	"syscall"
)

// endTogether has the processes that a command starts end with it.
func endTogether(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
}
