package funchost

import (
	"context"
	"fmt"
	"os"
)

// processEnv makes the test binary a function's process.
const processEnv = "FUNCHOST_TEST_PROCESS"

func processMain() {
	Main("tested", func(context.Context, *Env) (Function, error) {
		f := Function{Name: "tested"}
		f.Run = func(ctx context.Context, _ Publish) error {
			fmt.Fprintln(os.Stdout, "running")
			<-ctx.Done()
			return nil
		}
		return f, nil
	})
}
