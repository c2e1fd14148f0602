package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/jobweaver/jobweaver/local/suites/chaos/installation"
	"github.com/jobweaver/jobweaver/local/suites/chaos/proxy"
	"github.com/jobweaver/jobweaver/shared/retry"
)

// Faults of PostgreSQL. Those that fill a disk need root, see Installation.disk.
var (
	postgresFaults = []*kind{
		{name: "kill PostgreSQL", area: areaPostgres, hold: 2 * time.Second, strike: killPostgres},
		{name: "promote the standby", area: areaPostgres, strike: failOver},
		{name: "address moves to the standby", area: areaPostgres, hold: 6 * time.Second, strike: moveAddress},
		{name: "slow fsync", area: areaPostgres, hold: 10 * time.Second, strike: slowSync},
		{name: "standby cut off", area: areaPostgres, hold: 6 * time.Second, strike: cutStandby},
		{name: "clock of PostgreSQL ±20 s", area: areaPostgres, hold: 8 * time.Second, strike: stepPostgres(aBit)},
		{
			name: "clock of PostgreSQL ±1 h", area: areaPostgres, hold: 8 * time.Second, last: true,
			strike: stepPostgres(time.Hour),
		},
	}
	fullPostgres = &kind{name: "disk of PostgreSQL full", area: areaPostgres, hold: 8 * time.Second, strike: fillPostgres}
)

// killPostgres kills the primary with all of its processes. It restarts on the same data.
func killPostgres(c *chaos, f *fault) (func() error, error) {
	s := c.system.Postgres
	f.hits("%s", s.Primary.Name)
	return func() error { return errors.Join(s.Primary.Start(), s.AwaitPrimary(c.ctx)) }, s.Primary.Kill()
}

// failOver loses the primary for good: the standby takes over, and gets a new standby.
func failOver(c *chaos, f *fault) (func() error, error) {
	s := c.system.Postgres
	f.hits("from %s", s.Primary.Name)
	if err := errors.Join(s.Primary.Kill(), s.Promote(c.ctx)); err != nil {
		return nil, err
	}
	return func() error { return s.AddStandby(c.ctx) }, nil
}

// moveAddress makes the primary read only, promotes the standby, and moves the address, as a failover by DNS or by a
// virtual address does. The old server goes on answering its sessions, which lead to it, until the fault is healed.
func moveAddress(c *chaos, f *fault) (func() error, error) {
	s := c.system.Postgres
	f.hits("from %s", s.Primary.Name)
	if err := s.StopWrites(c.ctx); err != nil {
		return nil, err
	}
	retry.Pause(c.ctx, 3*time.Second)
	if err := s.Promote(c.ctx); err != nil {
		return nil, err
	}
	return func() error { return s.AddStandby(c.ctx) }, nil
}

func slowSync(c *chaos, f *fault) (func() error, error) {
	by := time.Duration(100+c.rnd.IntN(300)) * time.Millisecond
	f.hits("%s each", by)
	control := c.system.Postgres.Control
	return func() error { return control.SlowSync(0) }, control.SlowSync(by)
}

// cutStandby makes commits wait, since they are synchronous.
func cutStandby(c *chaos, f *fault) (func() error, error) {
	s := c.system.Postgres
	feed := installation.Pair{From: "standby", To: s.Primary.Name}
	f.hits("%s", feed)
	c.system.Net.Set(stall, feed)
	return func() error {
		c.system.Net.Set(proxy.Fault{}, feed)
		return nil
	}, nil
}

// stepPostgres steps the clock of both servers, which share one machine here.
func stepPostgres(by time.Duration) func(*chaos, *fault) (func() error, error) {
	return func(c *chaos, f *fault) (func() error, error) {
		by := by
		if c.rnd.IntN(2) == 0 {
			by = -by
		}
		f.hits("by %s", by)
		control, from := c.system.Postgres.Control, time.Now()
		return func() error {
			c.clocks = append(c.clocks, installation.Interval{What: "postgres", From: from, To: time.Now()})
			c.steppedBack = c.steppedBack || by == time.Hour
			return control.Step(0)
		}, control.Step(by)
	}
}

func fillPostgres(c *chaos, f *fault) (func() error, error) {
	s := c.system.Postgres
	f.hits("%s", s.Primary.Name)
	empty, err := fill(s.Primary.Disk)
	return func() error {
		// Without room for its log the server has ended, or is about to.
		return errors.Join(empty(), s.Primary.Kill(), s.Primary.Start(), s.AwaitPrimary(c.ctx), s.AwaitStandby(c.ctx))
	}, err
}

// fill fills a disk to the last byte.
func fill(disk string) (empty func() error, err error) {
	name := filepath.Join(disk, "ballast")
	empty = func() error { return os.Remove(name) }
	file, err := os.Create(name)
	if err != nil {
		return func() error { return nil }, fmt.Errorf("fill disk: %w", err)
	}
	defer func() { _ = file.Close() }()
	for _, size := range []int{1 << 20, 4 << 10, 1} {
		for chunk := make([]byte, size); err == nil; {
			_, err = file.Write(chunk)
		}
		if !errors.Is(err, syscall.ENOSPC) {
			return empty, fmt.Errorf("fill disk: %w", err)
		}
		err = nil
	}
	return empty, nil
}
