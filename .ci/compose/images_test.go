package compose_test

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/compose-spec/compose-go/v2/types"
)

var images = flag.Bool("images", false, "start the house from its images, by podman; .ci/images has built them")

// The broker is the embedded one: Apache Kafka is in the test of the processes.
func TestTheHouseStartsFromItsImagesAsLockedAsTheFileSays(t *testing.T) {
	t.Parallel()
	if !*images {
		t.Skip("no -images: .ci/images starts it")
	}
	h := newHouse(t, containers{prefix: fmt.Sprintf("jobweaver-%d-", os.Getpid())}, embedded)
	h.try()
}

// containers are run with what the file says of each, in this machine's network.
type containers struct{ prefix string }

// Nothing but what stands here gets past the container's walls.
func (c containers) command(s types.ServiceConfig, env, args []string) (*exec.Cmd, []string) {
	name := c.prefix + s.Name
	run := []string{"run", "--rm", "--name", name, "--pull=never", "--network=host", "--cgroups=disabled", "--user", s.User}
	if s.ReadOnly {
		run = append(run, "--read-only", "--read-only-tmpfs=false")
	}
	for _, path := range s.Tmpfs {
		run = append(run, "--tmpfs", path)
	}
	for _, drop := range s.CapDrop {
		run = append(run, "--cap-drop", drop)
	}
	for _, option := range s.SecurityOpt {
		run = append(run, "--security-opt", strings.TrimSuffix(option, ":true")) // podman's spelling
	}
	for _, volume := range s.Volumes {
		run = append(run, "--volume", c.prefix+volume.Source+":"+volume.Target)
	}
	for _, variable := range env {
		run = append(run, "--env", variable)
	}
	cmd := exec.Command("podman", append(append(run, s.Image), args...)...)
	if s.HealthCheck == nil {
		return cmd, nil
	}
	return cmd, append([]string{"podman", "exec", name}, s.HealthCheck.Test[1:]...)
}

func (c containers) volume(t *testing.T) string {
	t.Cleanup(func() { // once all has stopped
		if out, err := exec.Command("podman", "volume", "rm", c.prefix+"reports").CombinedOutput(); err != nil {
			t.Errorf("remove the volume: %v: %s", err, out)
		}
	})
	return "/var/jobweaver"
}
