// Command pack writes the chart as an archive, as helm package does, into a folder.
package main

import (
	"fmt"
	"os"

	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"helm.sh/helm/v4/pkg/chart/v2/util"

	"github.com/jobweaver/jobweaver/ci/helm"
)

func main() {
	if err := pack(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func pack(args []string) error {
	if len(args) != 1 {
		return fmt.Errorf("usage: pack FOLDER, not %q", args)
	}
	chart, err := loader.LoadDir(helm.Folder)
	if err != nil {
		return err
	}
	_, err = util.Save(chart, args[0])
	return err
}
