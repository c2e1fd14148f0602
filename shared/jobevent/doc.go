// Package jobevent is the language in which the functions talk: event types, the topics that carry
// them, the shape of their data, and ids that make a repeated event the same event.
package jobevent
