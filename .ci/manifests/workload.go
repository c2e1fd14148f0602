package manifests

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	servingv1 "knative.dev/serving/pkg/apis/serving/v1"
)

// Workload is what runs pods: a Knative Service, a Deployment or a Job.
type Workload struct {
	Object

	Labels, Annotations map[string]string // of its pods
	Pod                 corev1.PodSpec
	TimeoutSeconds      int64 // of a Knative Service; also the time in which its pods must stop
	OnKnative           bool

	config map[string]string // the data of the ConfigMaps that its container takes whole
}

// Workloads returns the workloads that run our image.
func Workloads(objects []Object) ([]Workload, error) {
	var found []Workload
	for _, object := range objects {
		w := Workload{Object: object}
		switch typed := object.Typed.(type) {
		case *servingv1.Service:
			spec := typed.Spec.Template.Spec
			w.Labels, w.Annotations = typed.Spec.Template.Labels, typed.Spec.Template.Annotations
			w.Pod, w.OnKnative, w.TimeoutSeconds = spec.PodSpec, true, *spec.TimeoutSeconds
		case *appsv1.Deployment:
			w.Labels, w.Pod = typed.Spec.Template.Labels, typed.Spec.Template.Spec
		case *batchv1.Job:
			w.Labels, w.Pod = typed.Spec.Template.Labels, typed.Spec.Template.Spec
		default:
			continue
		}
		if w.Function() == "" {
			continue
		}
		var err error
		if w.config, err = config(objects, w.Pod.Containers[0]); err != nil {
			return nil, fmt.Errorf("%s: %w", object, err)
		}
		found = append(found, w)
	}
	return found, nil
}

// Function returns the function that it runs, or jobweaver for another command of the image; empty: the image is not
// JobWeaver's.
func (w Workload) Function() string {
	c := w.Pod.Containers[0]
	name := imageName(c.Image)
	if name == "jobweaver" && len(c.Args) == 2 && c.Args[0] == "function" {
		return c.Args[1]
	}
	return name
}

// Env returns the environment variables with literal values, without those from ConfigMaps and Secrets.
func (w Workload) Env() map[string]string {
	env := map[string]string{}
	for name, value := range w.config {
		env[name] = value
	}
	for _, one := range w.Pod.Containers[0].Env {
		env[one.Name] = one.Value
	}
	return env
}

// Own returns the settings of this workload that are not in the shared ConfigMap.
func (w Workload) Own() []string {
	var names []string
	for _, one := range w.Pod.Containers[0].Env {
		names = append(names, one.Name)
	}
	return names
}

// Duration returns a setting of its environment.
func (w Workload) Duration(setting string, otherwise time.Duration) (time.Duration, error) {
	text, given := w.Env()[setting]
	if !given {
		return otherwise, nil
	}
	return time.ParseDuration(text)
}

// Scale returns the fewest and the most pods of a Knative Service.
func (w Workload) Scale() (fewest, most int, err error) {
	if fewest, err = strconv.Atoi(w.Annotations["autoscaling.knative.dev/min-scale"]); err != nil {
		return 0, 0, err
	}
	most, err = strconv.Atoi(w.Annotations["autoscaling.knative.dev/max-scale"])
	return fewest, most, err
}

// config returns the settings that a container takes from whole ConfigMaps.
func config(objects []Object, container corev1.Container) (map[string]string, error) {
	settings := map[string]string{}
	for _, from := range container.EnvFrom {
		if from.ConfigMapRef == nil {
			return nil, errors.New("it takes its environment from something else than a ConfigMap")
		}
		maps := Of[corev1.ConfigMap](objects)
		at := slices.IndexFunc(maps, func(m *corev1.ConfigMap) bool { return m.Name == from.ConfigMapRef.Name })
		if at < 0 {
			return nil, fmt.Errorf("there is no ConfigMap %s", from.ConfigMapRef.Name)
		}
		for name, value := range maps[at].Data {
			settings[name] = value
		}
	}
	return settings, nil
}

// imageName returns the last part of our image's name, without tag and digest; empty: the image is not ours.
func imageName(image string) string {
	image, _, _ = strings.Cut(image, "@")
	folder, name := path.Split(image)
	name, _, _ = strings.Cut(name, ":")
	if path.Base(path.Clean(folder)) != "jobweaver" {
		return ""
	}
	return name
}
