package compose_test

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/compose-spec/compose-go/v2/types"
)

var image = flag.Bool("image", false, "start the installation from its image, by podman; .ci/image has built it")

// This test uses the embedded broker; the test with plain processes uses Apache Kafka.
func TestTheInstallationStartsFromItsImageWithTheFilesRestrictions(t *testing.T) {
	t.Parallel()
	if !*image {
		t.Skip("no -image: .ci/image starts it")
	}
	h := newInstallation(t, containers{prefix: fmt.Sprintf("jobweaver-%d-", os.Getpid()), pids: t.TempDir()}, embedded)
	h.try()
}

// containers runs each service's container as the file describes it, in this machine's network.
type containers struct {
	prefix string
	pids   string // folder of a file for each container that has been set up
}

// These options give the container all that it may use of this machine.
func (c containers) command(s types.ServiceConfig, env, args []string) (*exec.Cmd, []string) {
	name := c.prefix + s.Name
	run := []string{"run", "--rm", "--name", name, "--pidfile", c.pidFile(s.Name), "--pull=never", "--network=host", "--cgroups=disabled", "--user", s.User}
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

func (c containers) pidFile(service string) string { return filepath.Join(c.pids, service) }

// awaitStart lets podman set up one container at a time. Debian's podman 4.3 locks all volumes of a new container, in
// any order, so two containers that share volumes may wait for each other for ever
// (https://github.com/containers/podman/issues/20313).
func (c containers) awaitStart(p *process) {
	for deadline := time.After(patience); ; {
		if _, err := os.Stat(c.pidFile(p.name)); err == nil {
			return
		}
		select {
		case <-p.ended:
			return
		case <-deadline: // the service is not up in time, as the test reports
			return
		case <-time.After(10 * time.Millisecond):
		}
	}
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
