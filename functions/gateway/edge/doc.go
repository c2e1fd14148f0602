// Package edge has the parts of HTTP that all endpoints of the gateway share: limits, bodies, parameters, cursors,
// entity tags, trace ids and errors.
//
// Why tags, trace ids and compression are so: docs/decisions/api.md#small-choices-of-the-http-api
package edge
