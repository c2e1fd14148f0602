package knative

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/jobweaver/jobweaver/functions"
	"github.com/jobweaver/jobweaver/shared/funchost"
	"github.com/jobweaver/jobweaver/shared/kafkatest"
	"github.com/jobweaver/jobweaver/shared/pgtest"
)

var binaries = flag.String("knative.bin", "", "the folder of the functions' binaries; empty: this test's own is all of them")

// functionEnv makes this binary the process of the function that it names.
const functionEnv = "KNATIVETEST_FUNCTION"

func TestMain(m *testing.M) {
	if name := os.Getenv(functionEnv); name != "" {
		funchost.Main(name, functions.Find(name))
		return
	}
	pgtest.Main(m, kafkatest.IgnoreSarama())
}

// commandOf returns a function's program, with an environment without this process's settings.
func commandOf(function string) (*exec.Cmd, error) {
	if *binaries != "" {
		return exec.Command(filepath.Join(*binaries, function)), nil
	}
	if functions.Find(function) == nil {
		return nil, fmt.Errorf("there is no function %q", function)
	}
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(self)
	cmd.Env = []string{functionEnv + "=" + function}
	return cmd, nil
}
