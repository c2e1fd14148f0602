// Command pull runs the function that hands attempts to pull workers.
package main

import (
	"github.com/jobweaver/jobweaver/functions/pull"
	"github.com/jobweaver/jobweaver/shared/funchost"
)

func main() { funchost.Main(pull.Name, pull.Wire) }
