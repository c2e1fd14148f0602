// Package protocol is a small model of the protocol that runs one job, and a walk through every state that the
// model can reach. The scheduler's moves are those of package jobstate.
//
// A state is all that anybody knows at one moment: the API's row and its kept command, the scheduler's row, the
// worker database's row of each attempt, the memory of two workers, and the records in Kafka. A step is one
// transaction of one function with the events it says after its commit, or a client's call, a handler's start
// or return, or a fault. Every order of steps is walked, so a clock may tick, a lease run out and a deadline
// pass at any moment, however early.
//
// Kafka only grows. A record that is in it may be consumed now, later, never, again, and in any order, which is
// more than Kafka does. No step asks whether a record is absent, so whatever can happen with fewer records can
// happen with more: a record that a killed process did not publish, that is late or that was wiped away is one
// that nobody consumes. What is published late or lost therefore needs no steps of its own for the promises of
// the kind "never"; a budget (Losses) adds them all the same, to check this very argument: a process is killed
// when any subset of its events is published, except that a job-status waits for the others. Only for the dead
// letter it matters whether it was published, so whoever publishes one may always be killed before.
//
// Promises of the kind "never" are checked at every step (promises.go). For "an accepted job ends", each state
// is taken as if everything went wrong at once just then: Kafka is emptied, frozen workers stay frozen,
// handlers never return. From there on only what is sure to happen happens, each record is consumed once, and
// the job must come to its end (ending.go). In each state no records may answer each other in a circle while
// nothing else changes: it would go round at the speed of the broker (circles.go).
//
// A process may be killed at any step, a worker's memory with it. The answer to a claim may be late or never
// come. A worker may freeze (or be cut off from its database) at any step, is then silent, and wakes at any
// step; before its next beat it must start nothing, but for one attempt that it was about to start when it
// froze: the exception in promises 2 and 8. No other two handlers of the job run at once, but beside one that
// ignores the end of its time.
//
// An attempt may begin to wait for a callback. The outside system calls back as soon as the handler has started
// or as late as it likes, and the deadline may pass at any moment. The API decides which of the two counts, and
// keeps that: a callback that says "failed" while the handler runs changes nothing until the attempt waits, or
// the next attempt would run beside it.
//
// An ended job is deleted by a command or by retention. What is left of the scheduler's row outlives all
// records; the tombstone carries the job's end, since it may overtake the status that told it, or that status
// may be lost. Retention is taken to come later than the publishing of the dead letter, which it
// is by days. Snoozes are left out.
//
// Versions are renumbered, the two workers are alike, and of the API's row only what its decisions depend on is
// kept: that makes the states few enough to walk. Defects are planted by Defect, each takes one rule of the
// protocol away, and the walk must find it.
package protocol
