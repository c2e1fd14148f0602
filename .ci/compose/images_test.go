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

var images = flag.Bool("images", false, "start the installation from its images, by podman; .ci/images has built them")

// This test uses the embedded broker; the test with plain processes uses Apache Kafka.
func TestTheInstallationStartsFromItsImagesWithTheFilesRestrictions(t *testing.T) {
	t.Parallel()
	if !*images {
		t.Skip("no -images: .ci/images starts it")
	}
	h := newInstallation(t, containers{prefix: fmt.Sprintf("jobweaver-%d-", os.Getpid())}, embedded)
	h.try()
}

// containers runs each service's container as the file describes it, in this machine's network.
type containers struct{ prefix string }

// These options give the container all that it may use of this machine.
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
		mount := c.prefix + volume.Source + ":" + volume.Target
		if volume.ReadOnly {
			mount += ":ro"
		}
		run = append(run, "--volume", mount)
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

func (c containers) at(path string) string { return path }

func (c containers) found(t *testing.T, volume types.ServiceVolumeConfig) string {
	t.Helper()
	out, err := exec.Command("podman", "volume", "inspect", "--format", "{{.Mountpoint}}", c.prefix+volume.Source).Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(out))
}

func (c containers) cleanUp(t *testing.T) {
	t.Helper()
	for name := range load(t).Volumes {
		if strings.HasPrefix(name, "secret-") || name == "reports" {
			if out, err := exec.Command("podman", "volume", "rm", c.prefix+name).CombinedOutput(); err != nil {
				t.Errorf("remove the volume: %v: %s", err, out)
			}
		}
	}
}
