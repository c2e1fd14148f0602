// Package upgrade runs the binaries of an older commit beside today's: on one schema, rolled one function after
// another, there and back, with jobs flowing and the Jobs of a deployment (migrate, topics create) in between. It
// turns functions into jobweaver serve and back, rolls a serve and its standby, and takes the database and the broker
// away from real processes and reads their probes. The first run takes minutes, because it builds everything: make
// test-upgrade.
package upgrade
