// Package observability checks that rules, runbooks, dashboards and the page about metrics agree with each other,
// and that every query of theirs returns data from a real Prometheus on a running installation.
package observability
