package funchost

import (
	"context"
	"time"

	"github.com/jobweaver/jobweaver/shared/telemetry"
)

// listenAgain is how long Listen waits before it listens anew to a database that went away.
const listenAgain = time.Second

// Listen has the database shorten the sleep of a clock until ctx ends: listen calls its argument when it begins and
// whenever there is something to do, and ends when it cannot go on. Without it the clock still ticks. wake has room for
// one value.
func Listen(ctx context.Context, wake chan<- struct{}, listen func(context.Context, func()) error) {
	trouble := telemetry.Trouble{What: "listen for wake-ups"}
	for {
		err := listen(ctx, func() {
			trouble.Note(ctx, nil)
			select {
			case wake <- struct{}{}:
			default:
			}
		})
		if ctx.Err() != nil {
			return
		}
		trouble.Note(ctx, err)
		select {
		case <-ctx.Done():
			return
		case <-time.After(listenAgain):
		}
	}
}
