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

func TestOneImageIsBuiltOnceAndRunsEachFunctionInOneService(t *testing.T) {
	t.Parallel()
	project := load(t)
	version := project.Environment["VERSION"]
	in := map[string][]string{}
	for _, service := range ours(project) {
		if want := repository + ":" + version; service.Image != want {
			t.Errorf("%s: image %s, want %s", service.Name, service.Image, want)
		}
		for _, function := range runs(t, service) {
			in[function] = append(in[function], service.Name)
		}
		user := "65532:65532"
		if service.Name == "secrets" { // it builds the image, writes to new volumes, which belong to root, and needs no network
			user = "0:0"
			if b := service.Build; b == nil || b.Dockerfile != "infra/Dockerfile" || *b.Args["VERSION"] != version {
				t.Errorf("secrets: is built as %+v", b)
			}
			if service.NetworkMode != "none" {
				t.Errorf("secrets: network %q", service.NetworkMode)
			}
		} else if service.Build != nil || service.PullPolicy != types.PullPolicyNever { // a second build of the name would fail
			t.Errorf("%s: pulled %q, built as %+v", service.Name, service.PullPolicy, service.Build)
		}
		if !service.ReadOnly || service.User != user || !slices.Equal(service.CapDrop, []string{"ALL"}) ||
			!slices.Contains(service.SecurityOpt, "no-new-privileges:true") || service.Privileged {
			t.Errorf("%s: may do more than it needs", service.Name)
		}
	}
	if e := project.Services["secrets"].Entrypoint; len(e) == 0 || e[0] != "/app" {
		t.Errorf("secrets runs %v", e)
	}
	for _, function := range functions(t) {
		if len(in[function]) != 1 {
			t.Errorf("%s runs in %v", function, in[function])
		}
		delete(in, function)
	}
	if len(in) > 0 {
		t.Errorf("these are no functions: %v", in)
	}
}

func TestServicesStartAfterWhatTheyNeed(t *testing.T) {
	t.Parallel()
	project := load(t)
	after := func(condition string, names ...string) types.DependsOnConfig {
		all := types.DependsOnConfig{}
		for _, name := range names {
			all[name] = types.ServiceDependency{Condition: condition, Required: true}
		}
		return all
	}
	want := map[string]types.DependsOnConfig{
		"secrets": {}, "prometheus": {}, "postgres": after(types.ServiceConditionCompletedSuccessfully, "secrets"),
		"grafana": after(types.ServiceConditionCompletedSuccessfully, "secrets"),
		"relay":   after(types.ServiceConditionHealthy, "api"),
		"migrate": after(types.ServiceConditionHealthy, "postgres"),
	}
	migrated := after(types.ServiceConditionHealthy, "kafka")
	migrated["migrate"] = types.ServiceDependency{Condition: types.ServiceConditionCompletedSuccessfully, Required: true}
	for _, service := range ours(project) {
		if once(service) {
			continue
		}
		if _, other := want[service.Name]; !other {
			want[service.Name] = migrated
		}
		if h := service.HealthCheck; h == nil || !slices.Equal(h.Test, []string{"CMD", "/app", "healthcheck"}) {
			t.Errorf("%s: health check %+v", service.Name, h)
		}
		if grace := service.StopGracePeriod; grace == nil || time.Duration(*grace) <= 31*time.Second {
			t.Errorf("%s: is killed after %v, and SHUTDOWN_GRACE and SHUTDOWN_DELAY are 31s", service.Name, grace)
		}
		if service.Restart != types.RestartPolicyUnlessStopped {
			t.Errorf("%s: restart %s", service.Name, service.Restart)
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
		if !strings.HasPrefix(service.Image, repository) && !pinned.MatchString(service.Image) {
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

func TestEverySettingIsOneThatAFunctionOfTheServiceReads(t *testing.T) {
	t.Parallel()
	known := settings(t)
	project := load(t)
	for _, service := range ours(project) {
		for name := range service.Environment {
			text := strings.TrimSuffix(name, "_FILE") // a file may hold the value of any text setting
			reads := func(section string) bool { return known[section][name] || known[section][text] }
			if !reads("") && !(service.Command[0] == "serve" && reads("jobweaver serve")) && !slices.ContainsFunc(runs(t, service), reads) {
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
		"": {"OTEL_EXPORTER_OTLP_ENDPOINT": true}, // OpenTelemetry's own
	}
	sections := []string{""}
	for line := range strings.Lines(read(t, "docs/settings.md")) {
		if title, ok := strings.CutPrefix(strings.TrimSpace(line), "## "); ok {
			title, _, _ = strings.Cut(title, " (")
			sections = strings.Split(strings.Replace(title, "Every function", "", 1), ", ")
		}
		var names []string
		if cells := strings.Split(line, "|"); len(cells) > 3 {
			names = []string{strings.TrimSpace(cells[1])}
		} else if also, ok := strings.CutPrefix(line, "Also, as described under "); ok { // that section describes them
			_, list, _ := strings.Cut(strings.TrimSuffix(strings.TrimSpace(also), "."), ": ")
			names = strings.Split(list, ", ")
		}
		for _, section := range sections {
			if known[section] == nil {
				known[section] = map[string]bool{}
			}
			for _, name := range names {
				known[section][name] = true
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
	var scraped, running []string
	for _, match := range regexp.MustCompile(`(?m)^ +- (\w+:\d+)$|names: \[(\w+)\], type: A, port: (\d+)`).FindAllStringSubmatch(config, -1) {
		if match[1] == "" {
			match[1] = match[2] + ":" + match[3]
		}
		scraped = append(scraped, match[1])
	}
	for _, service := range ours(project) {
		if !once(service) {
			running = append(running, service.Name+":"+values(t, service)["METRICS_PORT"])
		}
	}
	if slices.Sort(scraped); !slices.Equal(scraped, running) {
		t.Errorf("Prometheus reads %v, and there are %v", scraped, running)
	}
	if !strings.Contains(config, "honor_labels: true\n") {
		t.Error("Prometheus renames the label component, by which alerts know the slots of pull in the worker's process")
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
