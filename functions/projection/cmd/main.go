// Command projection runs the projection function.
package main

import (
	"github.com/jobweaver/jobweaver/functions/projection"
	"github.com/jobweaver/jobweaver/shared/funchost"
)

func main() { funchost.Main(projection.Name, projection.Wire) }
