// Package pool has the attempts that a worker has claimed. It keeps a worker that was cut off from the database from
// starting any of them.
//
// A worker is silent when its last heartbeat is more than 10 s old by the database's clock. Other workers then settle
// its attempts as lost, and the jobs may run elsewhere. So a worker that was cut off must start none of its attempts.
// It cannot read the database's clock, so the pool does the following:
//
//  1. Each heartbeat writes the worker's row, lists its attempts, and returns those that others have settled. When it
//     has got through, lastHeartbeat is the moment at which it began. The database stored a later instant. So this
//     worker counts itself as silent before any other does, even if the answer took long.
//  2. While the worker is silent, no attempt starts (ready), none is claimed (Room), and a claim that returns is
//     refused (Add). Running attempts go on: promise 2 of docs/design.md allows that, and the database refuses their
//     outcomes if they were settled as lost.
//  3. The first heartbeat after a silence gets through. It returns the listed attempts that others have settled, and
//     Taken ends them. But an attempt can be missing from the list: its claim was written, the worker was cut off
//     for more than 10 s, another worker settled the attempt as lost, this worker listed its attempts, and only then
//     did the claim's answer arrive. So the pool stays closed: Answered sets ending, raises the epoch, and asks for a
//     second heartbeat at once.
//  4. Every claim notes the epoch in which it began. Add refuses one of an earlier epoch, and the claim is repeated:
//     it reads the database again, and finds such an attempt settled.
//  5. The second heartbeat lists all attempts of the pool, and no attempt of an earlier epoch can come in any more.
//     When it has got through, ending is reset, lastHeartbeat is set, and attempts that wait for a slot may start.
//
// If the second heartbeat fails, ending stays set: the next one that gets through opens the pool. A gap of half a
// silence that only the database saw, because a clock was stepped or a machine was suspended, also raises the epoch and
// asks for a second heartbeat: others may have counted a longer gap. A pool begins silent, because lastHeartbeat is
// zero, so it opens with the second heartbeat.
package pool
