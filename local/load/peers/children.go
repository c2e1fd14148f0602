package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

const (
	startPatience = 20 * time.Second
	tryEvery      = 20 * time.Millisecond
)

// child is a server that a peer needs. It does not outlive this process.
type child struct{ cmd *exec.Cmd }

func startChild(env []string, name string, args ...string) (*child, error) {
	cmd := exec.Command(name, args...)
	cmd.Env = append(os.Environ(), env...)
	cmd.Stdout, cmd.Stderr = os.Stderr, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	return &child{cmd}, nil
}

func (c *child) stop() {
	_ = c.cmd.Process.Signal(syscall.SIGTERM) // an error means that it has ended
	_ = c.cmd.Wait()
}

// durable makes Redis sync each write to the disk before it answers.
var durable = []string{"--save", "", "--appendonly", "yes", "--appendfsync", "always"}

// startRedis starts Debian's redis-server in dir.
func startRedis(dir string) (*child, string, error) {
	socket := filepath.Join(dir, "redis.sock")
	redis, err := startChild(nil, "redis-server",
		append([]string{"--port", "0", "--unixsocket", socket, "--dir", dir, "--loglevel", "warning"}, durable...)...)
	if err != nil {
		return nil, "", fmt.Errorf("%w (apt-get install redis-server)", err)
	}
	return redis, socket, await("unix", socket)
}

// startFaktoryServer starts a Faktory server with its data in dir. Faktory starts its own Redis, which only keeps
// snapshots, and has no setting to change that. So it finds a redis-server in its PATH that adds our settings.
func startFaktoryServer(program, dir string) (*child, string, error) {
	address, err := freeAddress()
	if err != nil {
		return nil, "", err
	}
	real, err := exec.LookPath("redis-server")
	if err != nil {
		return nil, "", fmt.Errorf("%w (apt-get install redis-server)", err)
	}
	script := "#!/bin/sh\nexec " + real + " \"$@\" --save '' " + strings.Join(durable[2:], " ") + "\n"
	if err := os.WriteFile(filepath.Join(dir, "redis-server"), []byte(script), 0o700); err != nil {
		return nil, "", fmt.Errorf("start Faktory: %w", err)
	}
	path := []string{"PATH=" + dir + string(os.PathListSeparator) + os.Getenv("PATH")}
	server, err := startChild(path, program, "-b", address, "-w", "127.0.0.1:0", "-d", dir, "-c", dir, "-l", "error")
	if err != nil {
		return nil, "", err
	}
	return server, address, await("tcp", address)
}

func freeAddress() (string, error) {
	free, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		return "", fmt.Errorf("find a free port: %w", err)
	}
	return free.Addr().String(), free.Close()
}

// await waits until an address accepts connections.
func await(network, address string) error {
	var last error
	for deadline := time.Now().Add(startPatience); time.Now().Before(deadline); time.Sleep(tryEvery) {
		conn, err := (&net.Dialer{}).Dial(network, address)
		if err == nil {
			return conn.Close()
		}
		last = err
	}
	return errors.Join(fmt.Errorf("no server at %s", address), last)
}
