// Package dispatch chooses which waiting jobs go out next. It keeps the ledger, measures the room of the workers, holds
// to pauses and limits, and orders jobs by rank, dependency and turn. It knows no database: shared/schedulerdb reads
// rows, asks this package, and writes rows.
//
// # One transaction, step by step
//
// Functions of many processes change jobs at the same time. The row dispatch_state keeps the [Ledger], and its lock
// serialises them. Each transaction that brings work or makes room does this:
//
//  1. It changes rows of jobs, and collects in a [Delta] what that means for the ledger. It holds the locks of these
//     rows, but not yet that of the ledger. The exceptions, which come after step 2, are inserts of new jobs and all
//     changes of cohorts.
//  2. It locks the row of the ledger, reads it, and enters the delta. A transaction that had to wait for the lock reads
//     the version that the one before it committed.
//  3. It releases jobs that waited for those that have ended, and takes turns of ordering keys. That can end further
//     jobs, and so release more.
//  4. It measures the [Room] of the live workers, and sends out the best of the queues that have ready jobs: by rank,
//     or by turns of the fairness keys if several wait.
//  5. It writes the ledger and commits. Only the commit gives up the lock.
//
// Deadlocks cannot occur. Under the ledger's lock no transaction waits for a row of jobs: the statements of steps 3
// and 4 skip rows that another transaction has locked. Cohorts, the rows of jobs that fare alike, are written only
// under the ledger's lock. So a transaction may hold rows and wait for the ledger, but never the reverse. A skipped
// row is not forgotten: its holder is still before step 2, and its delta names the job as waiting, even if it has left
// the job as it was.
//
// What is exact under the lock:
//   - The attempts that are out, by queue, worker and partition, and by each job type and owner under a control. Every
//     commit that changes such a row has entered it. So no limit is ever exceeded.
//   - The controls. The ledger names the revision of the set, and a store that knows another revision reads the set
//     again.
//   - Which jobs have ended. New jobs are inserted under the lock too, so none begins to wait for a job that has just
//     ended.
//
// What may be stale, and only in the direction that costs a look:
//   - A floor may be lower than the best rank that waits; the scan then begins too early. A floor that is too high
//     would hide a job. That happens in one case: a job is skipped at step 4, the floor rises past it, and the
//     transaction that had it locked rolls back. The watchdog counts the rows every two seconds and enters the
//     difference.
//   - A queue may be remembered as one with several fairness keys when only one is left. That costs a look; the step
//     that looks at all of its keys corrects it.
//   - The due floor may lie before the first due instant; the clock then wakes for nothing.
//   - The room is as old as the last heartbeats. The worker's database and the lease correct it.
//   - The number of dependents may be too high, which costs a query. A number that is too low the watchdog corrects.
//
// A count reads rows and ledger in one snapshot, without the lock. Every commit changes both alike, so a difference in
// that snapshot is still the difference later, and may be added then: but only once, see [Ledger.AddDrift].
//
// Why there is one lock, and a ledger: docs/decisions/dispatch.md#one-lock-and-a-ledger-decide-what-goes-out
package dispatch
