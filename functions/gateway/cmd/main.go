// Command gateway runs the gateway function.
package main

import (
	"github.com/google/uuid"

	"github.com/jobweaver/jobweaver/functions/gateway"
	"github.com/jobweaver/jobweaver/shared/funchost"
)

func main() {
	// Without the pool each UUID is a system call, which is a seventh of the cost of a job in a batch. The setting
	// belongs to the process, and no UUID may be made before, so it is enabled here.
	uuid.EnableRandPool()
	funchost.Main(gateway.Name, gateway.Wire)
}
