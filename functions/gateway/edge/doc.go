// Package edge is what all endpoints of the gateway share of HTTP: limits, bodies, parameters, cursors, entity tags,
// trace ids and errors.
package edge
