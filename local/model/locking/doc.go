// Package locking is a small model of transactions that share locks, and a walk through every state that it can reach.
// It covers what the model of one job (package protocol) does not: a process that freezes with an open transaction.
//
// There are two jobs and a few processes, each of which works on one of the jobs. A process locks the row of its job,
// then the ledger, decides what to dispatch, commits, reads the payloads and publishes. Between any two steps all
// processes of one node may freeze at once, and they stay frozen. Their sessions in the server live on: a session that
// waits for a lock gets it in its turn, one that holds a lock keeps it, and one that sends rows to a frozen process
// blocks in the middle of them.
//
// Time passes in seconds, and only when no living process can take a step. The server's timeouts end what takes too
// long: a wait for a lock, a transaction in which the client does nothing, rows that the client does not read. A living
// process whose wait was ended tries again after a pause. The promise: a job on which a living process works is
// published within Within seconds of the freeze, whatever the order of the steps.
package locking
