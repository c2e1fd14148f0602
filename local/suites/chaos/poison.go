package main

import (
	"bufio"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// poisonShape kills every worker that runs it: it fails alone, and no other job fails with it.
var poisonShape = &shape{
	name: "kills its worker", request: works(0, 0, "kills", true), ends: one(failed), code: "WORKER.LOST",
}

var poisonFault = &kind{
	name: "a job that kills its worker", area: areaProcesses, hold: 20 * time.Second, strike: submitPoison,
}

func submitPoison(c *chaos, f *fault) (func() error, error) {
	o := c.load.newOrder(c.rnd, poisonShape, nil)
	f.hits("%s", o.key)
	c.load.submitting.Go(func() { c.load.submit(o) })
	return nil, nil
}

// killCaller kills the worker from which a request came, and starts it anew.
func (h *house) killCaller(remote string) error {
	_, port, err := net.SplitHostPort(remote)
	if err != nil {
		return err
	}
	inode, err := socketAt(port)
	if err != nil {
		return err
	}
	for _, f := range h.copiesOf("runjob") {
		if pid := f.pid(); pid != 0 && holds(pid, inode) {
			return healAll(f.kill, f.start)()
		}
	}
	return fmt.Errorf("no worker has the socket %s", inode)
}

// socketAt is the inode of the connected socket of 127.0.0.1 that has a local port.
func socketAt(port string) (inode string, err error) {
	number, err := strconv.ParseUint(port, 10, 16)
	if err != nil {
		return "", err
	}
	table, err := os.Open("/proc/net/tcp")
	if err != nil {
		return "", err
	}
	defer func() { _ = table.Close() }()
	for lines := bufio.NewScanner(table); lines.Scan(); {
		// "sl local_address rem_address st tx:rx tr:tm retrnsmt uid timeout inode …", numbers in hexadecimal.
		fields := strings.Fields(lines.Text())
		const local, inodeField = 1, 9
		if len(fields) > inodeField && strings.HasSuffix(fields[local], fmt.Sprintf(":%04X", number)) &&
			fields[inodeField] != "0" { // the port's connection before it, which nobody has open any more
			return fields[inodeField], nil
		}
	}
	return "", fmt.Errorf("no socket has port %s", port)
}

// holds says whether a process has a socket open.
func holds(pid int, inode string) bool {
	files, _ := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", pid))
	return slices.ContainsFunc(files, func(name string) bool {
		to, err := os.Readlink(name)
		return err == nil && to == "socket:["+inode+"]"
	})
}
