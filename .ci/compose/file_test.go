package compose_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/compose-spec/compose-go/v2/dotenv"
	"github.com/compose-spec/compose-go/v2/template"
	"github.com/compose-spec/compose-go/v2/types"
)

func TestEachFunctionIsAContainerOfItsOwnImage(t *testing.T) {
	t.Parallel()
	project := load(t)
	version := project.Environment["VERSION"]
	for _, service := range ours(project) {
		of, _, _ := strings.Cut(strings.TrimPrefix(service.Image, "jobweaver/"), ":")
		if want := "jobweaver/" + of + ":" + version; service.Image != want {
			t.Errorf("%s: image %s, want %s", service.Name, service.Image, want)
		}
		if service.Name == "topics" || service.Name == "migrate" {
			if service.Build != nil || service.PullPolicy != types.PullPolicyNever || service.Image != project.Services["secrets"].Image {
				t.Errorf("%s: image %s, pulled %q, built as %+v", service.Name, service.Image, service.PullPolicy, service.Build)
			}
		} else if b := service.Build; b == nil || b.Dockerfile != "infra/Dockerfile" || *b.Args["FUNCTION"] != of || *b.Args["VERSION"] != version {
			t.Errorf("%s: is built as %+v", service.Name, b)
		}
		user := "65532:65532"
		if service.Name == "secrets" { // it writes to new volumes, which belong to root, and needs no network
			user = "0:0"
			if service.NetworkMode != "none" {
				t.Errorf("secrets: network %q", service.NetworkMode)
			}
		}
		if !service.ReadOnly || service.User != user || !slices.Equal(service.CapDrop, []string{"ALL"}) ||
			!slices.Contains(service.SecurityOpt, "no-new-privileges:true") || service.Privileged {
			t.Errorf("%s: may do more than it needs", service.Name)
		}
	}
	if e := project.Services["secrets"].Entrypoint; len(e) == 0 || e[0] != "/app" {
		t.Errorf("secrets runs %v", e)
	}
	built := map[string]string{} // Compose builds all at once: the second build of a name would fail
	for _, service := range project.Services {
		if other, twice := built[service.Image]; twice && service.Build != nil {
			t.Errorf("%s and %s both build %s", other, service.Name, service.Image)
		}
		if service.Build != nil {
			built[service.Image] = service.Name
		}
	}
	for _, function := range functions(t) {
		if service, err := project.GetService(function); err != nil || !strings.HasPrefix(service.Image, "jobweaver/"+function+":") {
			t.Errorf("%s: no container: %v", function, err)
		}
	}
}

// The test need not check the database's name: a role may connect to its own database only, so a wrong one fails at the
// start.
func TestEachFunctionHasItsOwnRole(t *testing.T) {
	t.Parallel()
	project := load(t)
	for _, function := range functions(t) {
		if function == "relay" { // relay has no database of ours
			continue
		}
		url := values(t, project.Services[function])["DATABASE_URL"]
		want := fmt.Sprintf("postgres://jobweaver_%s@postgres:5432/jobweaver_", function)
		if !strings.HasPrefix(url, want) {
			t.Errorf("%s: DATABASE_URL %q, want %q…", function, url, want)
		}
		if !strings.Contains(url, "&pool_max_conns=4&") {
			t.Errorf("%s: DATABASE_URL %q: on a large machine it takes a connection a core", function, url)
		}
	}
}

func TestFunctionsStartAfterTheSchemaAndTheTopics(t *testing.T) {
	t.Parallel()
	project := load(t)
	secrets := types.DependsOnConfig{"secrets": {Condition: types.ServiceConditionCompletedSuccessfully, Required: true}}
	want := map[string]types.DependsOnConfig{
		"secrets": {}, "postgres": secrets, "prometheus": {}, "grafana": secrets,
		"migrate": {"postgres": {Condition: types.ServiceConditionHealthy, Required: true}},
		"topics":  {"kafka": {Condition: types.ServiceConditionHealthy, Required: true}},
	}
	for _, function := range functions(t) {
		want[function] = types.DependsOnConfig{
			"migrate": {Condition: types.ServiceConditionCompletedSuccessfully, Required: true},
			"topics":  {Condition: types.ServiceConditionCompletedSuccessfully, Required: true},
		}
		service := project.Services[function]
		if h := service.HealthCheck; h == nil || !slices.Equal(h.Test, []string{"CMD", "/app", "healthcheck"}) {
			t.Errorf("%s: health check %+v", function, h)
		}
		if grace := service.StopGracePeriod; grace == nil || time.Duration(*grace) <= 31*time.Second {
			t.Errorf("%s: is killed after %v, and SHUTDOWN_GRACE and SHUTDOWN_DELAY are 31s", function, grace)
		}
		if service.Restart != types.RestartPolicyUnlessStopped {
			t.Errorf("%s: restart %s", function, service.Restart)
		}
	}
	for name, after := range want {
		if got := project.Services[name].DependsOn; fmt.Sprint(got) != fmt.Sprint(after) {
			t.Errorf("%s starts after %v, want %v", name, got, after)
		}
	}
	for _, name := range []string{"postgres", "kafka"} {
		if project.Services[name].HealthCheck == nil || len(project.Services[name].Volumes) == 0 {
			t.Errorf("%s: no health check, or nothing that outlives it", name)
		}
	}
}

func TestNothingIsReachedFromOutsideThisMachine(t *testing.T) {
	t.Parallel()
	published := map[string]bool{}
	for _, service := range load(t).Services {
		for _, port := range service.Ports {
			if port.HostIP != "127.0.0.1" {
				t.Errorf("%s: port %s on %q", service.Name, port.Published, port.HostIP)
			}
			if published[port.Published] {
				t.Errorf("%s: port %s is another's too", service.Name, port.Published)
			}
			published[port.Published] = true
		}
		if service.NetworkMode != "" && service.NetworkMode != "none" {
			t.Errorf("%s: network %s", service.Name, service.NetworkMode)
		}
	}
	if !published["8080"] {
		t.Error("the gateway is not on 8080")
	}
}

var pinned = regexp.MustCompile(`:v?\d+\.\d+(\.\d+)?$`)

func TestOthersImagesArePinnedAndTheirFilesAreThere(t *testing.T) {
	t.Parallel()
	project := load(t)
	for _, service := range project.Services {
		if !strings.HasPrefix(service.Image, "jobweaver/") && !pinned.MatchString(service.Image) {
			t.Errorf("%s: image %s", service.Name, service.Image)
		}
		for _, volume := range service.Volumes {
			switch volume.Type {
			case types.VolumeTypeVolume:
				if _, ok := project.Volumes[volume.Source]; !ok {
					t.Errorf("%s: no volume %s", service.Name, volume.Source)
				}
			case types.VolumeTypeBind:
				if entries, err := os.ReadDir(volume.Source); err != nil || len(entries) == 0 || !volume.ReadOnly {
					t.Errorf("%s: %s is not a folder of files, read-only: %v", service.Name, volume.Source, err)
				}
			}
		}
	}
}

func TestEverySettingIsOneThatTheFunctionReads(t *testing.T) {
	t.Parallel()
	known := settings(t)
	project := load(t)
	for _, service := range ours(project) {
		for name := range service.Environment {
			text := strings.TrimSuffix(name, "_FILE") // a file may hold the value of any text setting
			if !known[""][name] && !known[service.Name][name] && !known[""][text] && !known[service.Name][text] {
				t.Errorf("%s: does not read %s", service.Name, name)
			}
		}
	}
}

// settings returns the settings in docs/settings.md, which is made from the code, by function. The settings of all
// functions are under "".
func settings(t *testing.T) map[string]map[string]bool {
	t.Helper()
	known := map[string]map[string]bool{
		"migrate": {"ROLES_PASSWORD": true}, "topics": {}, "secrets": {},
		"": {"OTEL_EXPORTER_OTLP_ENDPOINT": true}, // OpenTelemetry's own
	}
	sections := []string{""}
	for line := range strings.Lines(read(t, "docs/settings.md")) {
		if title, ok := strings.CutPrefix(strings.TrimSpace(line), "## "); ok {
			title, _, _ = strings.Cut(title, " (")
			sections = strings.Split(strings.Replace(title, "Every function", "", 1), ", ")
		}
		if cells := strings.Split(line, "|"); len(cells) > 3 {
			for _, section := range sections {
				if known[section] == nil {
					known[section] = map[string]bool{}
				}
				known[section][strings.TrimSpace(cells[1])] = true
			}
		}
	}
	if !known[""]["KAFKA_BROKERS"] || !known["runjob"]["POOL_SIZE"] || !known["watchdog"]["LEASE"] {
		t.Fatal("docs/settings.md has another form than this test reads")
	}
	return known
}

func TestTheEnvFileHasWhatTheFileAsksForAndNothingElse(t *testing.T) {
	t.Parallel()
	given, err := dotenv.Parse(strings.NewReader(read(t, ".env")))
	if err != nil {
		t.Fatal(err)
	}
	asked := map[string]bool{"COMPOSE_PROFILES": true} // docker compose itself reads it
	for _, match := range template.DefaultPattern.FindAllStringSubmatch(read(t, "docker-compose.yml"), -1) {
		name := match[template.DefaultPattern.SubexpIndex("braced")]
		asked[strings.FieldsFunc(name, func(r rune) bool { return r == ':' })[0]] = true
	}
	for name := range asked {
		if _, ok := given[name]; !ok {
			t.Errorf(".env lacks %s", name)
		}
	}
	for name := range given {
		if !asked[name] {
			t.Errorf("no service uses %s of .env", name)
		}
	}
}

// The test's own broker runs with that file, so its names are Kafka's.
func TestKafkaIsSetUpAsTheBrokerOfTheTests(t *testing.T) {
	t.Parallel()
	tested := map[string]string{}
	for line := range strings.Lines(read(t, "infra/laptop/localkafka/server.properties")) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), "="); ok && !strings.HasPrefix(name, "listener.name.") {
			tested[name] = value
		}
	}
	delete(tested, "sasl.enabled.mechanisms") // only the second listener has it
	set := values(t, load(t).Services["kafka"])
	for name, value := range tested {
		variable := "KAFKA_" + strings.ToUpper(strings.ReplaceAll(name, ".", "_"))
		got, ok := set[variable]
		if !ok || !strings.Contains(value, "{{") && got != value {
			t.Errorf("%s is %q, want %q of %s", variable, got, value, name)
		}
		delete(set, variable)
	}
	if len(set) > 0 {
		t.Errorf("the tests' broker has no %v", set)
	}
	pom := read(t, "infra/laptop/localkafka/pom.xml")
	_, tag, _ := strings.Cut(load(t).Services["kafka"].Image, ":")
	if !strings.Contains(pom, "<version>"+tag+"</version>") {
		t.Errorf("Kafka %s is not the one that tests run with", tag)
	}
}

func TestWhatIsWatchedIsThere(t *testing.T) {
	t.Parallel()
	project := load(t)
	config := read(t, "infra/prometheus/prometheus.yml")
	for _, function := range functions(t) {
		port := values(t, project.Services[function])["METRICS_PORT"]
		if !strings.Contains(config, "- "+function+":"+port+"\n") &&
			!strings.Contains(config, "{names: ["+function+"], type: A, port: "+port+",") {
			t.Errorf("Prometheus does not read %s at its port %q", function, port)
		}
	}
	sources, err := filepath.Glob(filepath.Join(root, "infra/grafana/provisioning/datasources/*.yml"))
	if err != nil || len(sources) == 0 {
		t.Fatalf("no datasource, %v", err)
	}
	for _, source := range sources {
		text, err := os.ReadFile(source)
		if err != nil {
			t.Fatal(err)
		}
		for _, match := range regexp.MustCompile(`url: https?://([\w-]+):\d+`).FindAllStringSubmatch(string(text), -1) {
			if _, ok := project.Services[match[1]]; !ok {
				t.Errorf("%s: there is no service %s", filepath.Base(source), match[1])
			}
		}
	}
}
