// Package locking is a small model of transactions that share locks, and a walk through every state that it can reach.
// It is about what the model of one job (package protocol) cannot see: a process that freezes with a transaction open.
//
// There are two jobs and a few processes, each of which has work on one of the jobs. A process locks the row of its
// job, then the lock of dispatching, decides what to send out, commits, reads the payloads and publishes. Between
// any two steps the processes of one node may freeze, all at once, and they stay so. Their sessions live on in the
// server: one that waits for a lock is granted it in its turn, one that holds a lock keeps it, and one that sends
// rows to a frozen process is blocked in the middle of them.
//
// Time passes in seconds, and only when no living process can take a step. The server's timeouts end what takes too
// long: a wait for a lock, a transaction in which the client does nothing, rows that nobody reads. A living process
// whose wait was ended comes again after a pause. The promise: a job on which a living process works is published
// within Within seconds of the freeze, whatever the order of the steps was.
package locking
