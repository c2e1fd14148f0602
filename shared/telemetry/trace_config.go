package telemetry

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"net/url"
	"strconv"
	"strings"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/jobweaver/jobweaver/shared/secret"
	"github.com/jobweaver/jobweaver/shared/tlsfiles"
)

// TraceConfig has OpenTelemetry's own settings. The SDK itself reads OTEL_BSP_*, OTEL_SPAN_* and
// OTEL_RESOURCE_ATTRIBUTES.
type TraceConfig struct {
	Endpoint       string `envconfig:"OTEL_EXPORTER_OTLP_ENDPOINT" desc:"URL of an OpenTelemetry collector that takes OTLP over HTTP, such as http://localhost:4318: traces go to /v1/traces there; empty: no spans are made"`
	TracesEndpoint string `envconfig:"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT" desc:"full URL for traces; overrides OTEL_EXPORTER_OTLP_ENDPOINT"`
	Disabled       bool   `envconfig:"OTEL_SDK_DISABLED" desc:"true: no spans are made"`
	Exporter       string `envconfig:"OTEL_TRACES_EXPORTER" default:"otlp" desc:"otlp, or none: no spans are made"`

	Protocol       string `envconfig:"OTEL_EXPORTER_OTLP_PROTOCOL" desc:"http/protobuf is the only value"`
	TracesProtocol string `envconfig:"OTEL_EXPORTER_OTLP_TRACES_PROTOCOL" desc:"the same, for traces"`

	Headers       secret.Text `envconfig:"OTEL_EXPORTER_OTLP_HEADERS" desc:"headers of each request, as name=value,name=value, percent-encoded"`
	TracesHeaders secret.Text `envconfig:"OTEL_EXPORTER_OTLP_TRACES_HEADERS" desc:"the same, for traces"`

	Timeout       string `envconfig:"OTEL_EXPORTER_OTLP_TIMEOUT" desc:"milliseconds for one batch, with all retries; 10000"`
	TracesTimeout string `envconfig:"OTEL_EXPORTER_OTLP_TRACES_TIMEOUT" desc:"the same, for traces"`

	Compression       string `envconfig:"OTEL_EXPORTER_OTLP_COMPRESSION" desc:"gzip or none"`
	TracesCompression string `envconfig:"OTEL_EXPORTER_OTLP_TRACES_COMPRESSION" desc:"the same, for traces"`

	CertificateFile string `envconfig:"OTEL_EXPORTER_OTLP_CERTIFICATE" desc:"a file with the PEM of the CAs that verify the collector; empty: the system's CAs"`
	ClientCertFile  string `envconfig:"OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE" desc:"a file with the PEM of the client certificate for the collector"`
	ClientKeyFile   string `envconfig:"OTEL_EXPORTER_OTLP_CLIENT_KEY" desc:"a file with the PEM of its key"`

	Sampler    string `envconfig:"OTEL_TRACES_SAMPLER" default:"parentbased_always_on" desc:"which traces are kept: always_on, always_off, traceidratio, or parentbased_ and one of these, with which the client's traceparent decides"`
	SamplerArg string `envconfig:"OTEL_TRACES_SAMPLER_ARG" desc:"for traceidratio: the part that is kept, 0 to 1; 1"`

	Service string `envconfig:"OTEL_SERVICE_NAME" desc:"service.name of the spans; empty: the function's name"`
}

const (
	tracesPath     = "/v1/traces"
	defaultTimeout = 10 * time.Second
)

// On reports whether spans are made at all.
func (c TraceConfig) On() bool {
	return !c.Disabled && c.Exporter != "none" && (c.Endpoint != "" || c.TracesEndpoint != "")
}

// Target returns the URL to which traces go. Its error begins with the setting's name.
func (c TraceConfig) Target() (*url.URL, error) {
	name, text, path := "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", c.TracesEndpoint, ""
	if text == "" {
		name, text, path = "OTEL_EXPORTER_OTLP_ENDPOINT", c.Endpoint, tracesPath
	}
	target, err := url.Parse(text)
	if err != nil || target.Host == "" || target.Scheme != "http" && target.Scheme != "https" {
		return nil, fmt.Errorf("%s: is not an http or https URL", name) // without the text: it may have a secret
	}
	if path != "" {
		target = target.JoinPath(path)
	} else if target.Path == "" {
		target.Path = "/"
	}
	return target, nil
}

// Plain names the setting that sends traces to another machine in plain text; empty: none does.
func (c TraceConfig) Plain() string {
	if !c.On() {
		return ""
	}
	if target, err := c.Target(); err != nil || target.Scheme == "https" || tlsfiles.IsLoopback(target.Hostname()) {
		return ""
	}
	if c.TracesEndpoint != "" {
		return "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"
	}
	return "OTEL_EXPORTER_OTLP_ENDPOINT"
}

// either returns the setting for traces, or the one for all signals, with its name.
func either(ofTraces, ofAll, name, nameOfAll string) (value, setting string) {
	if ofTraces != "" {
		return ofTraces, name
	}
	return ofAll, nameOfAll
}

func (c TraceConfig) timeout() (time.Duration, error) {
	text, name := either(c.TracesTimeout, c.Timeout, "OTEL_EXPORTER_OTLP_TRACES_TIMEOUT", "OTEL_EXPORTER_OTLP_TIMEOUT")
	if text == "" {
		return defaultTimeout, nil
	}
	ms, err := strconv.ParseUint(text, 10, 31)
	if err != nil || ms == 0 {
		return 0, fmt.Errorf("%s: %q is not a number of milliseconds", name, text)
	}
	return time.Duration(ms) * time.Millisecond, nil
}

func (c TraceConfig) gzip() (bool, error) {
	text, name := either(c.TracesCompression, c.Compression,
		"OTEL_EXPORTER_OTLP_TRACES_COMPRESSION", "OTEL_EXPORTER_OTLP_COMPRESSION")
	if text != "" && text != "none" && text != "gzip" {
		return false, fmt.Errorf("%s: %q is neither gzip nor none", name, text)
	}
	return text == "gzip", nil
}

// headers returns the headers for all signals and those for traces.
func (c TraceConfig) headers() (map[string]string, error) {
	all := map[string]string{}
	for _, given := range []struct {
		name string
		text secret.Text
	}{{"OTEL_EXPORTER_OTLP_HEADERS", c.Headers}, {"OTEL_EXPORTER_OTLP_TRACES_HEADERS", c.TracesHeaders}} {
		for pair := range strings.SplitSeq(given.text.Reveal(), ",") {
			if strings.TrimSpace(pair) == "" {
				continue
			}
			name, value, ok := strings.Cut(pair, "=")
			name = strings.TrimSpace(name)
			plain, err := url.PathUnescape(strings.TrimSpace(value))
			if !ok || name == "" || err != nil {
				return nil, fmt.Errorf("%s: is not name=value,name=value", given.name)
			}
			all[name] = plain
		}
	}
	return all, nil
}

// checkValues returns errors for values that no process can use. It does not check the exporter and the protocol: where
// JobWeaver has no collector, a platform may have set them for other programs.
func (c TraceConfig) checkValues() error {
	_, sampler := c.sampler()
	_, timeout := c.timeout()
	_, compression := c.gzip()
	_, headers := c.headers()
	return errors.Join(sampler, timeout, compression, headers)
}

func (c TraceConfig) check() error {
	protocol, name := either(c.TracesProtocol, c.Protocol,
		"OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL")
	switch {
	case c.Exporter != "" && c.Exporter != "otlp":
		return fmt.Errorf("OTEL_TRACES_EXPORTER: %q is neither otlp nor none", c.Exporter)
	case protocol != "" && protocol != "http/protobuf":
		return fmt.Errorf("%s: %q is not http/protobuf", name, protocol)
	}
	return nil
}

// resource describes the process of the spans.
func (c TraceConfig) resource(function, version string) (*resource.Resource, error) {
	own := resource.NewSchemaless(
		attribute.String("service.name", function), attribute.String("service.namespace", "jobweaver"),
		attribute.String("service.version", version),
	)
	given, err := resource.Merge(own, resource.Environment()) // the environment takes precedence
	if err == nil && c.Service != "" {
		given, err = resource.Merge(given, resource.NewSchemaless(attribute.String("service.name", c.Service)))
	}
	if err != nil && !errors.Is(err, resource.ErrSchemaURLConflict) {
		return nil, fmt.Errorf("OTEL_RESOURCE_ATTRIBUTES: %w", err)
	}
	return given, nil
}

// sampler decides which traces are kept. If only the id of a trace is known, it decides by the id, so that all
// functions decide the same.
type sampler struct {
	name       string
	threshold  uint64 // of 2^56: a trace whose id has lower last 56 bits is not kept
	withParent bool
}

// Why the id decides: docs/decisions/events.md#a-bit-of-the-jobs-id-decides-about-tracing
func (c TraceConfig) sampler() (sampler, error) {
	name := c.Sampler
	if name == "" {
		name = "parentbased_always_on"
	}
	s := sampler{name: name}
	name, s.withParent = strings.CutPrefix(name, "parentbased_")
	switch name {
	case "always_on":
	case "always_off":
		s.threshold = 1 << 56
	case "traceidratio":
		ratio := 1.0
		if c.SamplerArg != "" {
			var err error
			if ratio, err = strconv.ParseFloat(c.SamplerArg, 64); err != nil || !(ratio >= 0 && ratio <= 1) {
				return s, fmt.Errorf("OTEL_TRACES_SAMPLER_ARG: %q is not a number from 0 to 1", c.SamplerArg)
			}
		}
		s.threshold = uint64(math.Round((1 - ratio) * (1 << 56)))
	default:
		return s, fmt.Errorf("OTEL_TRACES_SAMPLER: %q is none of always_on, always_off, traceidratio, "+
			"parentbased_always_on, parentbased_always_off, parentbased_traceidratio", s.name)
	}
	return s, nil
}

// keeps decides by the last 56 bits, as W3C and OpenTelemetry define it. The SDK's own TraceIDRatioBased reads the last
// 64 bits, and the first two of those are never random in a UUID: with a ratio below a half it would keep no trace of
// ours.
func (s sampler) keeps(id trace.TraceID) bool {
	return binary.BigEndian.Uint64(id[8:])&(1<<56-1) >= s.threshold
}

// ShouldSample is sdktrace.Sampler's. A span without a parent that links to several traces is kept if one of them is.
func (s sampler) ShouldSample(p sdktrace.SamplingParameters) sdktrace.SamplingResult {
	parent := trace.SpanContextFromContext(p.ParentContext)
	keep := s.keeps(p.TraceID)
	if parent.IsValid() && s.withParent {
		keep = parent.IsSampled()
	}
	for _, link := range p.Links {
		keep = keep || !parent.IsValid() && link.SpanContext.IsSampled()
	}
	result := sdktrace.SamplingResult{Decision: sdktrace.Drop, Tracestate: parent.TraceState()}
	if keep {
		result.Decision = sdktrace.RecordAndSample
	}
	return result
}

// Description is sdktrace.Sampler's.
func (s sampler) Description() string { return s.name }
