package knative

import (
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"time"
)

// delivery is the delivery of a Trigger, or the default of a Broker.
type delivery struct {
	Retry          int          `yaml:"retry"`
	BackoffPolicy  string       `yaml:"backoffPolicy"`
	BackoffDelay   string       `yaml:"backoffDelay"`
	Timeout        string       `yaml:"timeout"`
	DeadLetterSink *destination `yaml:"deadLetterSink"`
}

// patience is how an event is delivered: n+1 tries.
type patience struct {
	retry   int
	delay   time.Duration
	linear  bool
	timeout time.Duration
}

// noTimeout is Knative's timeout for a Trigger that names none.
const noTimeout = 10 * time.Minute

func (d *delivery) patience() (p patience, err error) {
	p = patience{timeout: noTimeout}
	if d == nil {
		return p, nil
	}
	p.retry = d.Retry
	switch d.BackoffPolicy {
	case "", "exponential":
	case "linear":
		p.linear = true
	default:
		return p, fmt.Errorf("backoffPolicy %q", d.BackoffPolicy)
	}
	if d.BackoffDelay != "" {
		if p.delay, err = isoDuration(d.BackoffDelay); err != nil {
			return p, err
		}
	}
	if d.Timeout != "" {
		p.timeout, err = isoDuration(d.Timeout)
	}
	return p, err
}

// before returns the pause before the n-th retry, n from 1.
func (p patience) before(n int) time.Duration {
	if p.linear {
		return p.delay * time.Duration(n)
	}
	return p.delay << min(n-1, 16)
}

var isoFormat = regexp.MustCompile(`^P(?:(\d+)D)?(?:T(?:(\d+)H)?(?:(\d+)M)?(?:(\d+(?:\.\d+)?)S)?)?$`)

// isoDuration reads PT0.5S and the like, the format that Knative accepts; it does not accept 500ms.
func isoDuration(text string) (time.Duration, error) {
	parts := isoFormat.FindStringSubmatch(text)
	if parts == nil || len(text) < 3 {
		return 0, fmt.Errorf("%q is no ISO 8601 duration", text)
	}
	var sum float64
	for i, unit := range []time.Duration{24 * time.Hour, time.Hour, time.Minute, time.Second} {
		if parts[i+1] != "" {
			n, err := strconv.ParseFloat(parts[i+1], 64)
			if err != nil {
				return 0, err
			}
			sum += n * float64(unit)
		}
	}
	return time.Duration(sum), nil
}

// isRetried reports whether Knative's dispatchers retry after an answer; after any other that is not a 2xx the event
// goes to the dead letter sink at once.
func isRetried(status int) bool {
	return status >= 500 || slices.Contains([]int{
		http.StatusNotFound, http.StatusRequestTimeout, http.StatusConflict, http.StatusTooManyRequests,
	}, status)
}
