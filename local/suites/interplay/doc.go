// Package interplay runs random programs on a complete installation and checks them against the promises of the docs.
//
// A program is what an owner does: it submits jobs in every way, with every option and every kind of ending, gives
// commands, sets limits and pauses, makes batches, flows, schedules and queues, and now and then the installation, or
// one function, is killed, stopped or drained. Programs run side by side, each for two owners at once, which have API
// keys of their own, use the same keys and names, and try to reach each other's jobs. An HTTP server, a mail server and
// pull workers in the test do the work of the jobs and write down what really ran. The rules compare that, and what the
// API and its stream show, with a list of plain rules; each rule has the sentence of the docs that it holds the
// installation to.
//
//	go test ./local/suites/interplay -interplay.for=10m        (make interplay)
//
// Without -interplay.for the programs are skipped. The tests of the rules always run: they plant a defect for each rule
// in records of real programs.
package interplay
