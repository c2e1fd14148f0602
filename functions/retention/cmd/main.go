// Command retention runs the retention function.
package main

import (
	"github.com/jobweaver/jobweaver/functions/retention"
	"github.com/jobweaver/jobweaver/shared/funchost"
)

func main() { funchost.Main(retention.Name, retention.Wire) }
