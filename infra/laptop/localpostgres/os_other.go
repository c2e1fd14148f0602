//go:build !linux

package localpostgres

import (
	"os/exec"
	"strconv"
	"strings"
	"syscall"
)

func namespace(int, int) *syscall.SysProcAttr { return nil }

// children lists the processes started by pid.
func children(pid int) []int {
	out, _ := exec.Command("pgrep", "-P", strconv.Itoa(pid)).Output() // exit 1: it has none
	var found []int
	for _, line := range strings.Fields(string(out)) {
		if child, err := strconv.Atoi(line); err == nil {
			found = append(found, child)
		}
	}
	return found
}

// serves reports whether process pid is a server on the data folder, by its command line.
func serves(pid int, data string) bool {
	out, err := exec.Command("ps", "-o", "args=", "-p", strconv.Itoa(pid)).Output()
	return err == nil && strings.Contains(string(out), "-D "+data+" ")
}
