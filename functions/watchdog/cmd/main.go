// Command watchdog runs the watchdog function.
package main

import (
	"github.com/jobweaver/jobweaver/functions/watchdog"
	"github.com/jobweaver/jobweaver/shared/funchost"
)

func main() { funchost.Main(watchdog.Name, watchdog.Wire) }
