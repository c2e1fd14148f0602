// Command cron runs the cron function.
package main

import (
	"github.com/jobweaver/jobweaver/functions/cron"
	"github.com/jobweaver/jobweaver/shared/funchost"
)

func main() { funchost.Main(cron.Name, cron.Wire) }
