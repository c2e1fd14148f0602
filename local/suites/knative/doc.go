// Package knative runs the installation as Knative would, with no cluster: each function is a process that gets its
// events by HTTP and publishes its own to K_SINK, behind a broker of the test's own that behaves like Knative's. The
// Triggers, PingSources, sinks and functions, with their environment, are read from knative/base, so that the test
// covers what is deployed.
//
// The broker delivers each event, in no order, to the Triggers whose filters match. It retries after the same
// responses as Knative, and then sends the event to the dead letter sink. On purpose it delivers twice and late, and
// closes connections before it has received the response. A Knative Service is a proxy that starts its function's
// process when a request comes, and stops it when none has come for a while.
//
// The functions' processes are this test's own binary, with their wiring; with -knative.bin=bin they are the
// binaries of `make build`.
package knative
