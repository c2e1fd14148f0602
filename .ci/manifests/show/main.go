// Command show writes a kustomization as it is built: what kubectl apply -k would send.
package main

import (
	"fmt"
	"os"

	"github.com/jobweaver/jobweaver/ci/manifests"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: show FOLDER")
		os.Exit(2)
	}
	objects, err := manifests.Build(os.Args[1])
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	for _, object := range objects {
		fmt.Printf("---\n%s", object.YAML)
	}
}
