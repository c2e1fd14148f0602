// Package knative runs the installation as Knative would, with no cluster: each function is a process that gets its
// events by HTTP and says its own to K_SINK, behind a broker of the test's own that behaves like Knative's. What
// Triggers, PingSources, sinks and functions there are, and with which environment, is read from knative/base: what is
// tested is what is deployed.
//
// The broker gives each event to the Triggers whose filters it passes, in no order, tries again after the answers after
// which Knative does, and then goes to the dead letter sink. On purpose it delivers twice, late, and hangs up before it
// has heard the answer. A Knative Service is a proxy that starts its function's process when a request comes and stops
// it when none has come for a while.
//
// The functions' processes are this test's own binary, with their wiring; with -knative.bin=bin they are those that
// `make build` has made.
package knative
