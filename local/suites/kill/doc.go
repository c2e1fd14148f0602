// Package kill proves that nothing is lost. It runs the functions as their own processes, on a real PostgreSQL and a
// broker in a process of its own, submits jobs over HTTP all the while, and kills and freezes every process, stops
// the broker or the workers for a while, wipes the broker, steps PostgreSQL's clock and drains a worker. Handlers
// append to a witness file what they run, so the checks do not depend on a database; the same file shows whether
// ordering keys and limits held: which jobs ran one after another, and how many at the same time. Handlers of pull
// workers also wait for events, and call jobs. Tests that kill no single function run jobweaver serve: a process for
// each service, or one process and its standby.
//
//	go test ./local/suites/kill -kill.for=50s        (make test-kill)
//
// Without -kill.for the tests are skipped: they take minutes and need the machine for themselves.
package kill
