// Package pool has the attempts that a worker has claimed, and keeps a worker that was cut off from starting any of
// them.
//
// A worker whose last heartbeat is older than the silence, 10 s by the database's clock, is silent. Other workers then
// settle its attempts as lost, and these may run elsewhere. So a worker that was cut off must start none of them. It
// does not see the database's clock, so this is how the pool keeps to that:
//
//  1. Each heartbeat writes the worker's row, lists its attempts, and returns those that were settled by others. When
//     it has got through, lastBeat is the moment at which it began. The database stored a later instant. So this
//     worker counts itself as silent before any other does, even if the answer took long.
//  2. While it is silent, nothing starts (ready), nothing is claimed (Room), and a claim that comes back is refused
//     (Add). What runs goes on: promise 2 of docs/design.md allows that, and its outcome is refused if it was declared
//     lost.
//  3. The first heartbeat after a silence gets through. Its answer names the attempts that it listed and that others
//     have settled; Taken ends these. But an attempt can be missing from the list: its claim inserted the row, the
//     worker was cut off for more than 10 s, another worker settled the attempt as lost, this worker listed what it
//     had, and only then did the claim's answer arrive. So the pool stays closed: Beaten sets ending, raises the
//     epoch, and has a second heartbeat follow at once.
//  4. Every claim notes the epoch in which it began. Add refuses one of an earlier epoch, and the claim is repeated:
//     it reads the rows again, and finds such an attempt settled.
//  5. The second heartbeat lists all attempts of the pool, and no attempt of an earlier epoch can come in any more.
//     When it has got through, ending is reset, lastBeat is set, and what waits for a slot may start.
//
// If the second heartbeat fails, ending stays set: the next one that gets through opens the pool. A gap of half a
// silence that only the database saw, because a clock was stepped or a machine stood still, raises the epoch too and
// asks for a second heartbeat: others may have counted it as more. A pool begins silent, as lastBeat is zero, so it
// takes two heartbeats to open.
package pool
