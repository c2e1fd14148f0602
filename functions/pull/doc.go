// Package pull is a worker whose handlers run elsewhere: it hands attempts to pull workers, which ask for them over
// HTTP, and waits until they are settled, cancelled, or their pull worker falls silent.
//
// It embeds the worker of runjob, so claims, leases, fencing and outcomes are the same. Its heartbeats list what the
// pull workers ask for, and the scheduler sends nothing else. An attempt is claimed when a pull worker that may have it
// asks, and not before, and it starts when it is handed out. What waits here while its pull workers go is given back.
// The gateway is the only caller of its HTTP.
//
// # When pull itself is silent
//
// Package pool keeps a worker that was cut off from starting its attempts. Here the start is not the call of the
// handler (run) but the answer to a claim (hand), and between the two an attempt may wait: for further attempts of the
// claim, or for another claim, because the one that had it claimed has gone. This could happen:
//
//  1. A heartbeat gets through. 9 s later the pool, still open, calls the handler of attempt 1. No claim is there.
//  2. pull is cut off from its database, or frozen. 10 s after that heartbeat another worker settles attempt 1 as
//     lost. The scheduler dispatches attempt 2, and it starts elsewhere.
//  3. A claim comes to pull and is answered with attempt 1, whose pull worker starts it: beside attempt 2, or after
//     the job has ended. Its result is refused, but its side effects are there.
//
// So an attempt is handed out only while the worker's last heartbeat is less than half a silence old (Fresh): no other
// worker settles it within the next 5 s, the time that the answer has to reach the pull worker. Until then it is not
// claimed (wants), and no claim gets it (offer, open). hand asks once more, right before the answer, since the process
// may have been frozen in between. What was kept back is offered again when a heartbeat has got through, and given
// back 5 s after it was claimed, as any attempt for which no claim came.
//
// After the silence, hand may run before the handler has noticed that its attempt was settled as lost. The first
// heartbeat that gets through ends the contexts of such attempts, and only the second one makes the worker fresh. So
// hand asks first whether the worker is fresh, then whether the attempt's context has ended.
//
// What pull workers run when pull falls silent goes on, as the handlers of a Go worker do. Heartbeats are answered from
// memory and renew the lease at pull, which changes nothing for the others: they settle the attempt as lost. Then the
// statement that settles the pull worker's result finds it settled, and the result is answered 409. Without its
// database pull answers 503 after 10 s; the pull worker sends the result again, and gets one of the two.
//
// Why: docs/decisions/workers.md#pull-workers-ask-a-function-which-claims-only-for-a-request
package pull
