package main

import (
	"slices"
	"sync"
	"time"

	"github.com/jobweaver/jobweaver/local/suites/chaos/installation"
)

// Faults of the processes of functions and pull workers.
var processFaults = []*kind{
	{name: "kill a worker", area: areaProcesses, hold: 2 * time.Second, strike: killOne(worker)},
	{name: "kill a function", area: areaProcesses, hold: 2 * time.Second, strike: killOne("")},
	{name: "kill both of a function", area: areaProcesses, hold: 3 * time.Second, strike: killBoth},
	{name: "kill all workers", area: areaProcesses, hold: 3 * time.Second, strike: killWorkers},
	{name: "kill every function", area: areaProcesses, hold: 2 * time.Second, strike: killAll},
	{
		name: "freeze a worker beyond its lease", area: areaProcesses, hold: beyondLease, freezes: true,
		strike: freezeOne(worker),
	},
	{name: "freeze a function", area: areaProcesses, hold: 15 * time.Second, freezes: true, strike: freezeOne("")},
	{name: "freeze dispatch", area: areaProcesses, hold: 15 * time.Second, freezes: true, strike: freezeOne("dispatch")},
	{name: "freeze outcome", area: areaProcesses, hold: 15 * time.Second, freezes: true, strike: freezeOne("outcome")},
	{name: "storm of SIGTERM", area: areaProcesses, strike: termStorm},
	{name: "clock of a function ±20 s", area: areaProcesses, hold: 10 * time.Second, strike: stepProcess(aBit)},
	{
		name: "clock of a function ±1 h", area: areaProcesses, hold: 10 * time.Second, last: true,
		strike: stepProcess(time.Hour),
	},
}

const (
	areaProcesses = "processes"
	areaPostgres  = "postgres"
	areaKafka     = "kafka"
	areaNetwork   = "network"
)

// beyondLease is longer than a lease of 15 s and the silence after which a worker is reaped.
const beyondLease = 26 * time.Second

// aBit is a step of a clock that is longer than a lease.
const aBit = 20 * time.Second

// pairFaults are those of a jobweaver serve and its standby.
var pairFaults = []*kind{
	{name: "kill a process", area: areaProcesses, hold: 2 * time.Second, strike: killOne("")},
	{name: "kill a pull worker", area: areaProcesses, hold: 2 * time.Second, strike: killOne(installation.Puller)},
	{name: "kill both processes", area: areaProcesses, hold: 3 * time.Second, strike: killAll},
	{name: "freeze a process", area: areaProcesses, hold: 15 * time.Second, freezes: true, strike: freezeOne("")},
	{
		name: "freeze a process beyond its lease", area: areaProcesses, hold: beyondLease, freezes: true,
		strike: freezeOne(""),
	},
	{
		name: "freeze a pull worker beyond its lease", area: areaProcesses, hold: beyondLease, freezes: true,
		strike: freezeOne(installation.Puller),
	},
	{name: "SIGTERM of both", area: areaProcesses, strike: termStorm},
	{name: "clock of a process ±20 s", area: areaProcesses, hold: 10 * time.Second, strike: stepProcess(aBit)},
	{
		name: "clock of a process ±1 h", area: areaProcesses, hold: 10 * time.Second, last: true,
		strike: stepProcess(time.Hour),
	},
}

// worker is a process of runjob or a pull worker, in place of the name of a function.
const worker = "worker"

// anyProcess draws a process: a worker, a pull worker, one of a function, or one of any function except runjob. Each of
// a pair has all functions.
func (c *chaos) anyProcess(of string) *installation.Function {
	list := c.system.Functions
	switch {
	case of == installation.Puller:
		list = c.system.Pullers
	case c.system.Paired:
	case of == worker:
		list = c.workers()
	default:
		list = slices.DeleteFunc(slices.Clone(list), func(f *installation.Function) bool {
			return of != "" && f.Of != of || of == "" && f.Of == "runjob"
		})
	}
	return list[c.rnd.IntN(len(list))]
}

func (c *chaos) workers() []*installation.Function {
	return slices.Concat(c.system.CopiesOf("runjob"), c.system.Pullers)
}

func killOne(of string) func(*chaos, *fault) (func() error, error) {
	return func(c *chaos, f *fault) (func() error, error) {
		p := c.anyProcess(of)
		f.hits("%s", p.Name)
		return p.Start, p.Kill()
	}
}

func killBoth(c *chaos, f *fault) (func() error, error) {
	of := c.anyProcess("").Of
	f.hits("%s", of)
	return c.killMany(c.system.CopiesOf(of))
}

func killWorkers(c *chaos, _ *fault) (func() error, error) {
	return c.killMany(c.workers())
}

func killAll(c *chaos, _ *fault) (func() error, error) { return c.killMany(c.system.Processes()) }

func (c *chaos) killMany(list []*installation.Function) (heal func() error, err error) {
	var starts, kills []func() error
	for _, p := range list {
		starts, kills = append(starts, p.Start), append(kills, p.Kill)
	}
	return healAll(starts...), healAll(kills...)()
}

func freezeOne(of string) func(*chaos, *fault) (func() error, error) {
	return func(c *chaos, f *fault) (func() error, error) {
		p := c.anyProcess(of)
		f.hits("%s", p.Name)
		return p.Freeze()
	}
}

// termStorm restarts every function and pull worker as a rollout of a new version does, but several at a time.
func termStorm(c *chaos, _ *fault) (func() error, error) {
	const together = 6
	list := c.system.Processes()
	c.rnd.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
	for part := range slices.Chunk(list, together) {
		errs := make([]error, len(part))
		var stops sync.WaitGroup
		for i, p := range part {
			stops.Go(func() { errs[i] = healAll(p.Stop, p.Start)() })
		}
		stops.Wait()
		for _, err := range errs {
			if err != nil {
				return nil, err
			}
		}
	}
	return nil, nil
}

// stepProcess steps the wall clock of one process, forward or back, and later corrects it. A pull worker's is stepped
// by a little only: a sleep ends by the clock of the worker that began it, and would last for that hour as well.
func stepProcess(by time.Duration) func(*chaos, *fault) (func() error, error) {
	return func(c *chaos, f *fault) (func() error, error) {
		p, by := c.anyProcess(""), by
		if c.rnd.IntN(2) == 0 {
			by = -by
		}
		if c.rnd.IntN(4) == 0 {
			p = c.anyProcess("runjob")
		} else if by.Abs() == aBit && c.rnd.IntN(4) == 0 {
			p = c.anyProcess(installation.Puller)
		}
		f.hits("%s by %s", p.Name, by)
		from := time.Now()
		return func() error {
			c.clocks = append(c.clocks, installation.Interval{What: p.Name, From: from, To: time.Now()})
			return p.Clock.Step(0)
		}, p.Clock.Step(by)
	}
}
