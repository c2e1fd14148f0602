package main

import (
	"time"
)

// poisonShape kills every worker that runs it: it alone must fail, and no other job.
var poisonShape = &shape{
	name: "kills its worker", request: works(0, 0, "kills", true), ends: one(failed), code: "WORKER.LOST",
}

var poisonFault = &kind{
	name: "a job that kills its worker", area: areaProcesses, hold: 20 * time.Second, strike: submitPoison,
}

func submitPoison(c *chaos, f *fault) (func() error, error) {
	o := c.load.newOrder(c.rnd, poisonShape, nil)
	f.hits("%s", o.key)
	c.load.submitting.Go(func() { c.load.submit(o) })
	return nil, nil
}
