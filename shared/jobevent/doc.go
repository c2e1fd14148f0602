// Package jobevent has the events that the functions exchange: event types, the topics that carry
// them, the shape of their data, and ids that make a repeated event the same event.
package jobevent
