// Package protocol is a small model of the protocol that runs one job, and a walk through every state that the
// model can reach. The scheduler's transitions are those of package jobstate.
//
// A state has everything that is stored at one moment: the API's row and its stored command, the scheduler's row, the
// worker database's row of each attempt, the memory of two workers, and the records in Kafka. A step is one transaction
// of one function with the events that it publishes after its commit, or a client's call, a handler's start or return,
// or a fault. Every order of steps is walked, so a clock may tick, a lease run out and a deadline pass at any moment,
// however early.
//
// Kafka only grows. A record in it may be consumed now, later, never, again, and in any order, which is more than Kafka
// does. No step depends on the absence of a record, so everything that can happen with fewer records can happen with
// more: a record that a killed process did not publish, that is late or that was wiped is like a record that no
// function consumes. Late and lost records therefore need no steps of their own for the promises of the kind "never". A
// budget (Losses) adds such steps all the same, to check this very argument: a process is killed when any subset of its
// events is published, except that a job-status waits for the others. Only for a dead letter does it matter whether it
// was published, so a process that publishes one may always be killed before.
//
// Promises of the kind "never" are checked at every step (promises.go). For "an accepted job ends", everything goes
// wrong at once in each state: Kafka is emptied, frozen workers stay frozen, handlers never return. From there on only
// certain steps happen, each record is consumed once, and the job must end (ending.go). In no state may records answer
// each other in a circle while nothing else changes: such a circle would run at the speed of the broker (circles.go).
//
// A process may be killed at any step, and a worker's memory with it. The answer to a claim may be late or lost. A
// worker may freeze (or be cut off from its database) at any step, is then silent, and wakes at any step. Before its
// next heartbeat it must start no attempt, except one that it was about to start when it froze: this is the exception
// in promises 2 and 8 of docs/design.md. Otherwise no two handlers of the job run at once, except beside one that
// ignores its timeout.
//
// An attempt may begin to wait for a callback. The outside system calls back at any time after the handler has started,
// and the deadline may pass at any moment. The API decides which of the two counts, and stores the decision. A failed
// callback while the handler runs changes nothing until the attempt waits: otherwise the next attempt would run beside
// it.
//
// An ended job is deleted by a command or by retention. The scheduler's tombstone outlives all records. The event of
// the deletion has the job's end, because it may overtake the status with that end, or that status may be lost. The
// model assumes that retention deletes a job only after its dead letter was published: in reality days later. Snoozes
// are left out.
//
// Versions are renumbered, the two workers are interchangeable, and the API's row has only what its decisions depend
// on: that makes the states few enough to walk. Each Defect removes one rule of the protocol, and the walk must find
// it.
package protocol
