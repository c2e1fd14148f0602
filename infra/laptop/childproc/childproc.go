// Package childproc starts servers as children that do not outlive this process.
package childproc

import (
	"os/exec"
	"runtime"
	"syscall"
)

// Start starts cmd and returns a channel that is closed when the child has ended and was waited for. The child gets a
// process group of its own, so that Ctrl-C reaches only this process, which chooses when the child stops. On Linux
// the kernel sends the child onDeath when this process dies, even by SIGKILL.
func Start(cmd *exec.Cmd, onDeath syscall.Signal) (<-chan struct{}, error) {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Setpgid = true
	setDeathSignal(cmd.SysProcAttr, onDeath)
	started, ended := make(chan error), make(chan struct{})
	go func() {
		// The kernel sends the death signal when the forking *thread* ends; keep that thread alive
		// for as long as the child.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		defer close(ended)
		err := cmd.Start()
		started <- err
		if err == nil {
			_ = cmd.Wait()
		}
	}()
	return ended, <-started
}
