// Package protocol is a small model of the protocol that runs one job, and a walk through every state that
// the model can reach. The scheduler's moves are those of package jobstate.
//
// A state is all that anybody knows at one moment: the API's row and its kept command, the scheduler's
// row, the worker database's row of each attempt, the memory of two workers, and the records in Kafka.
// A step is one transaction of one function with the events it says after its commit, or a client's
// call, a handler's start or return, or a fault. Every order of steps is walked, so a clock may tick,
// a lease run out and a deadline pass at any moment, however early.
//
// Kafka only grows. A record that is in it may be heard now, later, never, again, and in any order,
// which is more than Kafka does. No step asks whether a record is absent, so whatever can happen with
// fewer records can happen with more: a record that a killed process did not get to say, that is late
// or that was wiped away is one that nobody hears. What is published late or lost therefore needs no
// steps of its own for the promises of the kind "never"; a budget (Losses) adds them all the same, to
// check this very argument. Only for the dead letter it matters whether it was said at all, so whoever
// says one may always be killed just before.
//
// Promises of the kind "never" are checked at every step (promises.go). For "an accepted job ends",
// each state is taken as if everything went wrong at once just then: Kafka is emptied, frozen workers
// stay frozen, handlers never return. From there on only what is sure to happen happens, each record
// is heard once, and the job must come to its end (ending.go).
//
// A process may be killed at any step, a worker's memory with it. The answer to a claim may be late or
// never come. A worker may freeze (or be cut off from its database) at any step, is then silent, and
// wakes at any step; before its next beat it must start nothing, but for one attempt that it was about
// to start when it froze: the exception in promises 2 and 8. Callbacks, snoozes and deletion are left out.
//
// Versions are renumbered, the two workers are alike, and of the API's row only what its decisions
// depend on is kept: that makes the states few enough to walk. Defects are planted by Defect, each takes
// one rule of the protocol away, and the walk must find it.
package protocol
