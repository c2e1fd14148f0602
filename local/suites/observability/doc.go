// Package observability proves that what looks at JobWeaver sees something: rules, runbooks, dashboards and the page
// about metrics fit each other, and on a running installation with a real Prometheus every query answers.
package observability
