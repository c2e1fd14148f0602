// Command bulk runs the bulk function.
package main

import (
	"github.com/jobweaver/jobweaver/functions/bulk"
	"github.com/jobweaver/jobweaver/shared/funchost"
)

func main() { funchost.Main(bulk.Name, bulk.Wire) }
