// Package edge has the parts of HTTP that all endpoints of the gateway share: limits, bodies, parameters, cursors,
// entity tags, trace ids and errors.
package edge
