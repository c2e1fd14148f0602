// Command relay runs the relay function.
package main

import (
	"github.com/jobweaver/jobweaver/functions/relay"
	"github.com/jobweaver/jobweaver/shared/funchost"
)

func main() { funchost.MainWithoutDatabase(relay.Name, relay.Wire) }
