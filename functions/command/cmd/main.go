// Command command runs the command function.
package main

import (
	"github.com/jobweaver/jobweaver/functions/command"
	"github.com/jobweaver/jobweaver/shared/funchost"
)

func main() { funchost.Main(command.Name, command.Wire) }
