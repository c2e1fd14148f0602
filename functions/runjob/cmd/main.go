// Command runjob runs the worker.
package main

import (
	"github.com/jobweaver/jobweaver/functions/runjob"
	"github.com/jobweaver/jobweaver/shared/funchost"
)

func main() { funchost.Main(runjob.Name, runjob.Wire) }
