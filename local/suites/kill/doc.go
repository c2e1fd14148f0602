// Package kill proves that nothing is lost. It runs the functions as their own processes, on a real PostgreSQL and a
// broker in a process of its own, submits jobs over HTTP all the while, and kills and freezes every process, takes
// the broker or the workers away for a while, wipes the broker and steps PostgreSQL's clock. It learns what ran from
// a witness file to which the handlers append, not from a database; likewise whether ordering keys and limits held:
// which jobs ran one after another, and how many at once.
//
//	go test ./local/suites/kill -kill.for=50s        (make test-kill)
//
// Without -kill.for the tests are skipped: they take minutes and need the machine for themselves.
package kill
