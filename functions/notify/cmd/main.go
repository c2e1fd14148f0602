// Command notify runs the notify function.
package main

import (
	"github.com/jobweaver/jobweaver/functions/notify"
	"github.com/jobweaver/jobweaver/shared/funchost"
)

func main() { funchost.Main(notify.Name, notify.Wire) }
