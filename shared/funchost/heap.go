package funchost

import (
	"os"
	"runtime/debug"
	"sync"
)

// gcPercent is how far the heap may grow beyond what is kept before it is collected. A function keeps
// little and throws much away: at Go's 100 a fifth of its CPU under load goes into collecting.
const gcPercent = 300

// relaxGC sets it for the process, unless the operator has chosen otherwise.
var relaxGC = sync.OnceFunc(func() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
	}
})
