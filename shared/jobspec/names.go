package jobspec

import (
	"errors"
	"fmt"
	"slices"
)

// OtherName has, by a name that is known only to requests and answers, or only to filters, the name of the other.
var OtherName = map[string]string{"jobType": "type", "type": "jobType", "tags": "tag", "tag": "tags"}

// Check looks at what an operator set: names that no request could use are a mistake. An error begins with the setting.
func (r Rules) Check() error {
	return errors.Join(CheckQueues(r.Queues), checkJobTypes(r.JobTypes))
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
		if wrong := WrongJobType(jobType); wrong != "" && jobType != AnyType {
			return fmt.Errorf("JOB_TYPES: %q %s", jobType, wrong)
		}
	}
	return nil
}
