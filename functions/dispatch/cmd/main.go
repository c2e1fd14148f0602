// Command dispatch runs the dispatch function.
package main

import (
	"github.com/jobweaver/jobweaver/functions/dispatch"
	"github.com/jobweaver/jobweaver/shared/funchost"
)

func main() { funchost.Main(dispatch.Name, dispatch.Wire) }
