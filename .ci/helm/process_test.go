package helm

import (
	"bytes"
	"context"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/spf13/cobra"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/jobweaver/jobweaver/ci/manifests"
	"github.com/jobweaver/jobweaver/infra/laptop/freeport"
	"github.com/jobweaver/jobweaver/infra/laptop/localkafka"
	"github.com/jobweaver/jobweaver/infra/laptop/localpostgres"
	"github.com/jobweaver/jobweaver/local/jobweaver/installcmd"
	"github.com/jobweaver/jobweaver/migrations"
	"github.com/jobweaver/jobweaver/shared/apikey"
	"github.com/jobweaver/jobweaver/shared/client"
	"github.com/jobweaver/jobweaver/shared/testwait"
)

// processEnv makes this test's binary the image's, with the commands that a container of the chart runs.
const processEnv = "HELM_TEST_PROCESS"

func TestMain(m *testing.M) {
	if os.Getenv(processEnv) == "" {
		os.Exit(m.Run())
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	root := &cobra.Command{Use: "jobweaver", SilenceUsage: true}
	root.AddCommand(installcmd.NewServe(), installcmd.NewMigrate())
	err := root.ExecuteContext(ctx)
	stop()
	if err != nil {
		os.Exit(1)
	}
}

// machine is where the containers of a rendered chart run: with their arguments, settings and Secrets, but at free ports.
type machine struct {
	t       *testing.T
	secrets map[string]map[string]string
	brokers string
}

// start starts a container. It returns its address, its metrics' address, and a channel that its end closes.
func (m machine) start(spec corev1.PodSpec) (api, metrics string, ended chan struct{}) {
	m.t.Helper()
	self, err := os.Executable()
	if err != nil {
		m.t.Fatal(err)
	}
	c, files := spec.Containers[0], m.t.TempDir()
	args := slices.Clone(c.Args)
	for i, arg := range args {
		if strings.HasPrefix(arg, "/etc/") {
			args[i] = filepath.Join(files, arg)
		}
	}
	for _, mount := range c.VolumeMounts {
		i := slices.IndexFunc(spec.Volumes, func(v corev1.Volume) bool { return v.Name == mount.Name })
		if source := spec.Volumes[i].Secret; source != nil {
			m.mount(source, filepath.Join(files, mount.MountPath))
		}
	}
	api, metrics = freeport.For(m.t), freeport.For(m.t)
	cmd := exec.Command(self, args...) //nolint:gosec // ourselves
	cmd.Env = append(os.Environ(), processEnv+"=1", "HOST=127.0.0.1", "TMPDIR="+m.t.TempDir())
	for _, one := range c.Env {
		value := one.Value
		switch {
		case one.Name == "PORT":
			value = api
		case one.Name == "METRICS_PORT":
			value = metrics
		case one.Name == "KAFKA_BROKERS":
			value = m.brokers
		case strings.HasSuffix(one.Name, "_FILE"):
			value = filepath.Join(files, value)
		}
		cmd.Env = append(cmd.Env, one.Name+"="+value)
	}
	out := new(lockedBuffer)
	cmd.Stdout, cmd.Stderr = out, out
	if err := cmd.Start(); err != nil {
		m.t.Fatal(err)
	}
	ended = make(chan struct{})
	go func() {
		defer close(ended)
		_ = cmd.Wait()
	}()
	m.t.Cleanup(func() {
		_ = cmd.Process.Kill()
		<-ended
		if m.t.Failed() {
			m.t.Logf("%s printed\n%s", c.Args, out.text())
		}
	})
	return "http://127.0.0.1:" + api, "http://127.0.0.1:" + metrics, ended
}

func (m machine) mount(source *corev1.SecretVolumeSource, folder string) {
	m.t.Helper()
	if err := os.MkdirAll(folder, 0o700); err != nil {
		m.t.Fatal(err)
	}
	items := source.Items
	if len(items) == 0 { // all keys
		for key := range m.secrets[source.SecretName] {
			items = append(items, corev1.KeyToPath{Key: key, Path: key})
		}
	}
	for _, item := range items {
		text, there := m.secrets[source.SecretName][item.Key]
		if !there {
			m.t.Fatalf("there is no key %s in the Secret %s", item.Key, source.SecretName)
		}
		if err := os.WriteFile(filepath.Join(folder, item.Path), []byte(text), 0o600); err != nil {
			m.t.Fatal(err)
		}
	}
}

type lockedBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *lockedBuffer) Write(text []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(text)
}

func (b *lockedBuffer) text() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}

func status(t *testing.T, url string) int {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0
	}
	_ = res.Body.Close()
	return res.StatusCode
}

// doesAJob waits until the processes are ready, and lets them do a job.
func doesAJob(t *testing.T, api, metrics, key string) {
	t.Helper()
	testwait.Until(t, "the API is ready", func() bool { return status(t, api+"/health/readiness") == http.StatusOK })
	job, err := client.New(api, key).Run(t.Context(), client.JobRequest{
		JobType: "SIMULATION", Payload: map[string]any{"steps": []any{map[string]any{"type": "LOG", "message": "hi"}}},
	})
	if err != nil || job.Status != client.Completed {
		t.Errorf("the job is %+v, %v", job, err)
	}
	if got := status(t, metrics+"/metrics"); got != http.StatusOK {
		t.Errorf("the port of the metrics answers %d", got)
	}
}

func postgres(t *testing.T) string {
	t.Helper()
	server, err := localpostgres.Start(t.Context(), localpostgres.Config{Dir: t.TempDir(), NoSync: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Stop() })
	return server.URL()
}

func TestAPodOfSingleIsAWholeInstallation(t *testing.T) {
	t.Parallel()
	key := apikey.New().Reveal()
	m := machine{t: t, secrets: map[string]map[string]string{"db": {"url": postgres(t)}, "key": {"bootstrap-api-key": key}}}
	objects := renderLines(t, external+"apiKey: {existingSecret: key}\n")
	pod := manifests.Of[appsv1.Deployment](objects)[0].Spec.Template.Spec
	api, metrics, _ := m.start(pod)
	doesAJob(t, api, metrics, key)
}

func TestPodsOfGroupsWithARoleForEachServiceDoAJob(t *testing.T) {
	t.Parallel()
	broker, err := localkafka.StartEmbedded(localkafka.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = broker.Stop() })
	key, admin := apikey.New().Reveal(), postgres(t)
	objects := renderLines(t, groups+"installation: shop\ndatabase: {roles: services, schemas: true, passwordsSecret: words}\napiKey: {existingSecret: key}\n")
	made, _ := manifests.Named(objects, "Secret", "jobweaver-signing")
	signing := map[string]string{}
	for name, text := range made.Typed.(*corev1.Secret).Data {
		signing[name] = string(text)
	}
	m := machine{t: t, brokers: strings.Join(broker.Brokers(), ","), secrets: map[string]map[string]string{
		"db": {"url": admin}, "key": {"bootstrap-api-key": key}, "jobweaver-signing": signing, "words": {},
	}}
	layout := migrations.Layout{Installation: "shop", Schemas: true}
	for _, set := range layout.Sets() {
		m.secrets["words"][set.ServiceRole()] = "secret"
		m.secrets["db"][set.Name] = strings.Replace(admin, strings.SplitAfter(admin, "@")[0], "postgres://"+set.ServiceRole()+":secret@", 1)
	}
	_, _, migrated := m.start(manifests.Of[batchv1.Job](objects)[0].Spec.Template.Spec)
	<-migrated
	var api, metrics string
	for _, d := range manifests.Of[appsv1.Deployment](objects) {
		at, measures, _ := m.start(d.Spec.Template.Spec)
		if d.Name == "jobweaver-api" {
			api, metrics = at, measures
		}
	}
	doesAJob(t, api, metrics, key)
}
