package main

import (
	"slices"
	"strings"
	"time"

	"github.com/jobweaver/jobweaver/local/suites/chaos/installation"
	"github.com/jobweaver/jobweaver/local/suites/chaos/proxy"
)

// The ways in which connections fail.
var (
	stall      = proxy.Fault{StallUp: true, StallDown: true}
	noAnswers  = proxy.Fault{StallDown: true}
	refuse     = proxy.Fault{Refuse: true}
	lose       = proxy.Fault{DropDown: true}
	loseCommit = proxy.Fault{LoseCommit: true}
	halfClose  = proxy.Fault{HalfClose: true}
	slow       = proxy.Fault{Delay: 100 * time.Millisecond}
)

// Faults of the connections: of one function, one process or all, to the database or the brokers.
var networkFaults = []*kind{
	partition("PostgreSQL stalls for a function", toPostgres, ofAFunction, 12*time.Second, stall),
	partition("PostgreSQL resets a function", toPostgres, ofAFunction, 5*time.Second, refuse),
	partition("answers of PostgreSQL lost for all", toPostgres, ofAll, 5*time.Second, lose),
	partition("answers to COMMIT lost for all", toPostgres, ofAll, 4*time.Second, loseCommit),
	partition("PostgreSQL half closed for all", toPostgres, ofAll, 5*time.Second, halfClose),
	partition("PostgreSQL slow for all", toPostgres, ofAll, 10*time.Second, slow),
	partition("PostgreSQL stalls for a worker", toPostgres, ofAWorker, 20*time.Second, stall),
	partition("brokers stall for a function", toBrokers, ofAFunction, 12*time.Second, stall),
	partition("brokers reset a function", toBrokers, ofAFunction, 8*time.Second, refuse),
	partition("answers of brokers lost for a function", toBrokers, ofAFunction, 12*time.Second, noAnswers),
	partition("brokers slow for all", toBrokers, ofAll, 10*time.Second, slow),
	partition("brokers stall for a worker", toBrokers, ofAWorker, beyondLease, stall),
	partition("one process and one server apart", toAny, ofAProcess, 8*time.Second, stall),
	partition("gateway stalls for a pull worker", toGateway, ofAPuller, 20*time.Second, stall),
	partition("answers of gateways lost for pull workers", toGateway, ofPullers, 5*time.Second, lose),
}

// pairNetworkFaults are those of a jobweaver serve and its standby.
var pairNetworkFaults = []*kind{
	partition("PostgreSQL stalls for a process", toPostgres, ofAProcess, 12*time.Second, stall),
	partition("PostgreSQL stalls for a process beyond its lease", toPostgres, ofAProcess, beyondLease, stall),
	partition("PostgreSQL resets a process", toPostgres, ofAProcess, 5*time.Second, refuse),
	partition("answers of PostgreSQL lost for both", toPostgres, ofAll, 5*time.Second, lose),
	partition("answers to COMMIT lost for both", toPostgres, ofAll, 4*time.Second, loseCommit),
	partition("PostgreSQL half closed for both", toPostgres, ofAll, 5*time.Second, halfClose),
	partition("PostgreSQL slow for both", toPostgres, ofAll, 10*time.Second, slow),
	partition("one process and one server apart", toAny, ofAProcess, 8*time.Second, stall),
	partition("gateway stalls for a pull worker", toGateway, ofAPuller, 20*time.Second, stall),
	partition("answers of gateways lost for pull workers", toGateway, ofPullers, 5*time.Second, lose),
}

// whom draws the processes that a fault hits.
type whom func(c *chaos) []*installation.Function

func ofAFunction(c *chaos) []*installation.Function { return c.system.CopiesOf(c.anyProcess("").Of) }
func ofAWorker(c *chaos) []*installation.Function {
	return []*installation.Function{c.anyProcess("runjob")}
}
func ofAll(c *chaos) []*installation.Function     { return c.system.Functions }
func ofPullers(c *chaos) []*installation.Function { return c.system.Pullers }

func ofAPuller(c *chaos) []*installation.Function {
	return []*installation.Function{c.anyProcess(installation.Puller)}
}

func ofAProcess(c *chaos) []*installation.Function {
	return []*installation.Function{c.system.Functions[c.rnd.IntN(len(c.system.Functions))]}
}

// to draws the servers that a fault hits.
type to func(c *chaos) []string

func toPostgres(c *chaos) []string {
	return []string{c.system.Postgres.Nodes[0].Name, c.system.Postgres.Nodes[1].Name}
}

func toBrokers(c *chaos) (names []string) {
	for _, b := range c.system.Brokers {
		names = append(names, b.Name)
	}
	return names
}

func toGateway(*chaos) []string { return []string{installation.Gateway} }

func toAny(c *chaos) []string {
	all := slices.Concat(toPostgres(c), toBrokers(c))
	i := c.rnd.IntN(len(all))
	return all[i : i+1]
}

// partition returns a fault of every link between some processes and some servers.
func partition(name string, to to, of whom, hold time.Duration, how proxy.Fault) *kind {
	return &kind{name: name, area: areaNetwork, hold: hold, strike: func(c *chaos, f *fault) (func() error, error) {
		var links []installation.Pair
		list, servers := of(c), to(c)
		for _, p := range list {
			for _, server := range servers {
				links = append(links, installation.Pair{From: p.Name, To: server})
			}
			if c.system.Paired || slices.Contains([]string{"runjob", "pull", installation.Puller}, p.Of) {
				f.cutOff = append(f.cutOff, p.Name)
			}
		}
		if len(list) < len(c.system.Functions) {
			f.hits("%s → %s", list[0].Of, strings.Join(servers, ", "))
		}
		c.system.Net.Set(how, links...)
		return func() error {
			c.system.Net.Set(proxy.Fault{}, links...)
			return nil
		}, nil
	}}
}

// allKinds returns the kinds of faults that this machine can make.
func allKinds(h *installation.Installation) []*kind {
	kinds, full := slices.Concat(processFaults, postgresFaults, kafkaFaults, networkFaults, []*kind{poisonFault}),
		[]*kind{fullPostgres, fullKafka}
	if h.Paired {
		kinds = slices.Concat(pairFaults, postgresFaults, pairNetworkFaults, []*kind{poisonFault})
		full = full[:1]
	}
	if h.CanFill() {
		kinds = append(kinds, full...)
	}
	return kinds
}
