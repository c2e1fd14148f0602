package manifests

import (
	"context"
	"errors"
	"fmt"
	"sync"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	eventingv1 "knative.dev/eventing/pkg/apis/eventing/v1"
	"knative.dev/eventing/pkg/apis/eventing/v1beta3"
	"knative.dev/eventing/pkg/apis/feature"
	sourcesv1 "knative.dev/eventing/pkg/apis/sources/v1"
	"knative.dev/pkg/apis"
	servingv1 "knative.dev/serving/pkg/apis/serving/v1"
	"sigs.k8s.io/yaml"

	"github.com/jobweaver/jobweaver/ci/manifests/crd"
)

// types are the kinds that have a Go type to be decoded into.
var types = map[string]func() any{
	"v1 Namespace":                           func() any { return new(corev1.Namespace) },
	"v1 ConfigMap":                           func() any { return new(corev1.ConfigMap) },
	"v1 Secret":                              func() any { return new(corev1.Secret) },
	"v1 Service":                             func() any { return new(corev1.Service) },
	"v1 ServiceAccount":                      func() any { return new(corev1.ServiceAccount) },
	"v1 PersistentVolumeClaim":               func() any { return new(corev1.PersistentVolumeClaim) },
	"apps/v1 Deployment":                     func() any { return new(appsv1.Deployment) },
	"apps/v1 StatefulSet":                    func() any { return new(appsv1.StatefulSet) },
	"autoscaling/v2 HorizontalPodAutoscaler": func() any { return new(autoscalingv2.HorizontalPodAutoscaler) },
	"batch/v1 Job":                           func() any { return new(batchv1.Job) },
	"batch/v1 CronJob":                       func() any { return new(batchv1.CronJob) },
	"networking.k8s.io/v1 NetworkPolicy":     func() any { return new(networkingv1.NetworkPolicy) },
	"networking.k8s.io/v1 Ingress":           func() any { return new(networkingv1.Ingress) },
	"policy/v1 PodDisruptionBudget":          func() any { return new(policyv1.PodDisruptionBudget) },
	"rbac.authorization.k8s.io/v1 Role":      func() any { return new(rbacv1.Role) },

	"rbac.authorization.k8s.io/v1 RoleBinding": func() any { return new(rbacv1.RoleBinding) },

	"serving.knative.dev/v1 Service":         func() any { return new(servingv1.Service) },
	"eventing.knative.dev/v1 Broker":         func() any { return new(eventingv1.Broker) },
	"eventing.knative.dev/v1 Trigger":        func() any { return new(eventingv1.Trigger) },
	"eventing.knative.dev/v1beta3 EventType": func() any { return new(v1beta3.EventType) },
	"sources.knative.dev/v1 PingSource":      func() any { return new(sourcesv1.PingSource) },
	"sources.knative.dev/v1 SinkBinding":     func() any { return new(sourcesv1.SinkBinding) },
}

// definitions has the CRDs of the kinds without a Go type: Knative's kinds for Kafka, and all kinds of other projects.
var definitions = sync.OnceValues(crd.Load)

// knativeKind has the methods that Knative's webhook calls on each of its own kinds.
type knativeKind interface {
	apis.Defaultable
	apis.Validatable
}

// Decode reads an object into its type and refuses what the cluster would refuse: unknown fields, and for Knative's
// kinds what its webhook rejects. It returns nil for a kind that only has a CustomResourceDefinition.
func Decode(apiVersion, kind string, text []byte) (any, error) {
	id := apiVersion + " " + kind
	make, known := types[id]
	if !known {
		return nil, checkDefined(id, schema.FromAPIVersionAndKind(apiVersion, kind), text)
	}
	object := make()
	if err := yaml.UnmarshalStrict(text, object); err != nil {
		return nil, err
	}
	if own, ok := object.(knativeKind); ok {
		ctx := creating()
		own.SetDefaults(ctx)
		if err := own.Validate(ctx).Filter(apis.ErrorLevel); err != nil {
			return nil, err
		}
		if err := own.Validate(ctx).Filter(apis.WarningLevel); err != nil {
			return nil, errors.Join(errors.New("a warning of Knative"), err)
		}
	}
	return object, nil
}

func checkDefined(id string, gvk schema.GroupVersionKind, text []byte) error {
	set, err := definitions()
	if err != nil {
		return err
	}
	if !set.Knows(gvk) {
		return fmt.Errorf("there is no check for a %s", id)
	}
	return set.Check(context.Background(), text)
}

// creating returns the context in which the webhook sees a new object, in an installation with Knative's defaults.
func creating() context.Context {
	flags := feature.Flags{feature.DeliveryTimeout: feature.Enabled}
	return apis.WithinCreate(feature.ToContext(context.Background(), flags))
}
