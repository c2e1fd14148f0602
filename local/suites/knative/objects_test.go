package knative

// manifests are the objects of knative/base, as far as the test uses them.
type manifests []object

// object is an object of any kind: each kind uses its own fields of the spec.
type object struct {
	APIVersion string            `yaml:"apiVersion"`
	Kind       string            `yaml:"kind"`
	Metadata   metadata          `yaml:"metadata"`
	Spec       spec              `yaml:"spec"`
	Data       map[string]string `yaml:"data"` // of a ConfigMap
}

type metadata struct {
	Name        string            `yaml:"name"`
	Namespace   string            `yaml:"namespace"`
	Labels      map[string]string `yaml:"labels"`
	Annotations map[string]string `yaml:"annotations"`
}

type spec struct {
	// Trigger
	Broker  string   `yaml:"broker"`
	Filter  *legacy  `yaml:"filter"`
	Filters []filter `yaml:"filters"`
	// Trigger, and a Broker's default
	Subscriber destination `yaml:"subscriber"`
	Delivery   *delivery   `yaml:"delivery"`
	// PingSource
	Schedule    string `yaml:"schedule"`
	Timezone    string `yaml:"timezone"`
	ContentType string `yaml:"contentType"`
	PingData    string `yaml:"data"`
	// PingSource, SinkBinding
	Sink        destination `yaml:"sink"`
	CEOverrides overrides   `yaml:"ceOverrides"`
	Subject     struct {
		Kind     string `yaml:"kind"`
		Name     string `yaml:"name"`
		Selector struct {
			MatchLabels map[string]string `yaml:"matchLabels"`
		} `yaml:"selector"`
	} `yaml:"subject"`
	// KafkaSink
	Topic       string `yaml:"topic"`
	ContentMode string `yaml:"contentMode"`
	// Service, Deployment
	Template template `yaml:"template"`
}

type template struct {
	Metadata metadata `yaml:"metadata"`
	Spec     podSpec  `yaml:"spec"`
}

type podSpec struct {
	ContainerConcurrency int         `yaml:"containerConcurrency"`
	TimeoutSeconds       int         `yaml:"timeoutSeconds"`
	GraceSeconds         int         `yaml:"terminationGracePeriodSeconds"`
	Containers           []container `yaml:"containers"`
	Volumes              []volume    `yaml:"volumes"`
}

type container struct {
	Image          string     `yaml:"image"`
	Env            []variable `yaml:"env"`
	EnvFrom        []envFrom  `yaml:"envFrom"`
	Mounts         []mount    `yaml:"volumeMounts"`
	ReadinessProbe probe      `yaml:"readinessProbe"`
}

type probe struct {
	HTTPGet struct {
		Path string `yaml:"path"`
	} `yaml:"httpGet"`
}

type named struct {
	Name string `yaml:"name"`
	Key  string `yaml:"key"`
}

type variable struct {
	Name      string `yaml:"name"`
	Value     string `yaml:"value"`
	ValueFrom *struct {
		ConfigMap *named `yaml:"configMapKeyRef"`
		Secret    *named `yaml:"secretKeyRef"`
	} `yaml:"valueFrom"`
}

type envFrom struct {
	ConfigMap *named `yaml:"configMapRef"`
	Secret    *named `yaml:"secretRef"`
}

type mount struct {
	Name string `yaml:"name"`
	Path string `yaml:"mountPath"`
}

type volume struct {
	Name     string      `yaml:"name"`
	Secret   *secretName `yaml:"secret"`
	EmptyDir *struct{}   `yaml:"emptyDir"`
}

type secretName struct {
	Name  string `yaml:"secretName"`
	Items []struct {
		Key  string `yaml:"key"`
		Path string `yaml:"path"`
	} `yaml:"items"`
}

// destination is where Knative sends an event: an object or a URL.
type destination struct {
	Ref *reference `yaml:"ref"`
	URI string     `yaml:"uri"`
}

type reference struct {
	APIVersion string `yaml:"apiVersion"`
	Kind       string `yaml:"kind"`
	Name       string `yaml:"name"`
}

type overrides struct {
	Extensions map[string]string `yaml:"extensions"`
}

// known are the kinds that the test uses.
var known = map[string]bool{
	"Broker": true, "Trigger": true, "PingSource": true, "KafkaSink": true, "SinkBinding": true,
	"Service": true, "Deployment": true, "ConfigMap": true,
}

// of returns the objects of one kind.
func (m manifests) of(kind string) (list []object) {
	for _, o := range m {
		if o.Kind == kind {
			list = append(list, o)
		}
	}
	return list
}

func (m manifests) find(kind, name string) (object, bool) {
	for _, o := range m.of(kind) {
		if o.Metadata.Name == name {
			return o, true
		}
	}
	return object{}, false
}

// isServing distinguishes a Knative Service from a Kubernetes one.
func (o object) isServing() bool {
	return o.Kind == "Service" && o.APIVersion == "serving.knative.dev/v1"
}
