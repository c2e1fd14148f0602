// Command outcome runs the outcome function.
package main

import (
	"github.com/jobweaver/jobweaver/functions/outcome"
	"github.com/jobweaver/jobweaver/shared/funchost"
)

func main() { funchost.Main(outcome.Name, outcome.Wire) }
