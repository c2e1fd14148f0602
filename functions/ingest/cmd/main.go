// Command ingest runs the ingest function.
package main

import (
	"github.com/jobweaver/jobweaver/functions/ingest"
	"github.com/jobweaver/jobweaver/shared/funchost"
)

func main() { funchost.Main(ingest.Name, ingest.Wire) }
