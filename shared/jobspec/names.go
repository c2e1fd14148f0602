package jobspec

import (
	"errors"
	"fmt"
	"maps"
	"slices"
)

// OtherName has, by a name that is known only to requests and answers, or only to filters, the name of the other.
var OtherName = map[string]string{"jobType": "type", "type": "jobType", "tags": "tag", "tag": "tags"}

// Check looks at what an operator set: names that no request could use are a mistake. An error begins with the setting.
func (r Rules) Check() error {
	return errors.Join(CheckQueues(r.Queues), checkJobTypes(r.JobTypes))
}

// Defaults reads RETRY_POLICIES. An entry for a job type that no request can have is a misspelt one. Its error begins
// with the setting.
func (r Rules) Defaults(text string) (TypeDefaults, error) {
	defaults, err := ParseTypeDefaults(text)
	if err != nil {
		return nil, fmt.Errorf("RETRY_POLICIES: %w", err)
	}
	for _, jobType := range slices.Sorted(maps.Keys(defaults)) {
		if jobType != allTypes && !r.Accepts(jobType) {
			return nil, fmt.Errorf("RETRY_POLICIES: the job type of an entry %s", r.UnknownType(jobType))
		}
	}
	return defaults, nil
}

// CheckQueues checks the names in QUEUES. Its error begins with the setting.
func CheckQueues(queues []string) error {
	for i, queue := range queues {
		if wrong := WrongQueue(queue); wrong != "" {
			return fmt.Errorf("QUEUES: %q %s", queue, wrong)
		}
		if slices.Contains(queues[:i], queue) {
			return fmt.Errorf("QUEUES: %q is there twice", queue)
		}
	}
	return nil
}

func checkJobTypes(types []string) error {
	for _, jobType := range types {
		if wrong := WrongJobType(jobType); wrong != "" && jobType != "*" {
			return fmt.Errorf("JOB_TYPES: %q %s", jobType, wrong)
		}
	}
	return nil
}
