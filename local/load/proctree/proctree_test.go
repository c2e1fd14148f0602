package proctree_test

import (
	"os/exec"
	"runtime"
	"testing"
	"time"

	"github.com/jobweaver/jobweaver/local/load/proctree"
)

const burn = `i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done; `

func TestAProcessCountsItsChildren(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("there is no /proc")
	}
	for name, script := range map[string]string{
		"that have ended": "( " + burn + "); read end; :",
		"that live":       "( " + burn + "read end; : ); :",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cmd := exec.Command("/bin/sh", "-c", script)
			stdin, err := cmd.StdinPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() {
				_ = stdin.Close()
				_ = cmd.Wait()
			})
			pid := cmd.Process.Pid
			look := time.NewTicker(10 * time.Millisecond)
			defer look.Stop()
			for deadline := time.Now().Add(20 * time.Second); proctree.CPU(pid) < 50*time.Millisecond; <-look.C {
				if time.Now().After(deadline) {
					t.Fatalf("after 20 s only %v", proctree.CPU(pid))
				}
			}
			if got := proctree.Memory(pid); got < 100<<10 {
				t.Errorf("%d bytes of memory", got)
			}
			if proctree.Switches(pid) == 0 {
				t.Error("it waits for its input, and was never switched away from")
			}
		})
	}
}
