package dispatch

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/jobweaver/jobweaver/shared/jobevent"
)

// Subject is a queue, a job type, an owner or a fairness key for which a control may be set.
type Subject struct {
	Kind jobevent.ControlKind
	Name string
}

func queueSubject(queue string) Subject { return Subject{jobevent.ControlQueue, queue} }

func keySubject(key string) Subject { return Subject{jobevent.ControlKey, key} }

// MarshalText writes the subject as a key of the ledger: type:EMAIL.
func (s Subject) MarshalText() ([]byte, error) { return []byte(string(s.Kind) + ":" + s.Name), nil }

// UnmarshalText reads what MarshalText wrote.
func (s *Subject) UnmarshalText(text []byte) error {
	kind, name, ok := strings.Cut(string(text), ":")
	if !ok {
		return fmt.Errorf("read %q as the subject of a control", text)
	}
	s.Kind, s.Name = jobevent.ControlKind(kind), name
	return nil
}

// Controls are the pauses and limits of one revision. The ledger names the revision that is in force.
type Controls struct {
	revision     int64
	bySubject    map[Subject]control              // only controls that hold something back
	anyOf        map[jobevent.ControlKind]control // by kind: the control for each name without one of its own
	weights      map[string]int                   // of fairness keys; missing: 1
	workers      map[string]jobevent.Control      // by worker; a paused one gets no attempts
	created      []jobevent.CreatedQueue          // that workers serve beside their own, by name
	digest       string                           // of created
	byJob        bool                             // some controls are about a job type or an owner
	byKey        bool                             // some controls hold back a fairness key
	limitsStarts bool                             // some controls limit the starts a second
}

// Class has the fields by which controls distinguish jobs of a queue.
type Class struct {
	Queue       string
	JobType     string
	OwnerID     string // empty: none
	FairnessKey string // empty: none
}

// FairnessKeyOf returns the key with which a new job shares its queue: the one that its request named, or its owner.
func FairnessKeyOf(job *jobevent.Created) string { return cmp.Or(job.FairnessKey, job.OwnerID) }

func classOf(job *jobevent.Created) Class {
	return Class{job.Queue, job.JobType, job.OwnerID, FairnessKeyOf(job)}
}

func (c Class) kind() Kind { return Kind{c.Queue, c.JobType, c.OwnerID} }

// control is a pause, a limit or both.
type control struct {
	paused          bool
	maxRunning      int     // unlimited: any number
	startsPerSecond float64 // zero: any number
}

const unlimited = math.MaxInt32

// NoControls is the set of an installation that never had a control.
var NoControls = NewControls(0, nil)

// NewControls makes the set of a revision.
func NewControls(revision int64, kept []jobevent.Control) *Controls {
	set := &Controls{
		revision: revision, bySubject: map[Subject]control{}, anyOf: map[jobevent.ControlKind]control{},
		weights: map[string]int{}, workers: map[string]jobevent.Control{},
	}
	for _, k := range kept {
		if k.Kind == jobevent.ControlWorker {
			set.workers[k.Name] = k
			continue
		}
		if k.Kind == jobevent.ControlCreated {
			if k.Workers != "" {
				set.created = append(set.created, jobevent.CreatedQueue{Name: k.Name, Workers: k.Workers})
			}
			continue
		}
		if k.Kind == jobevent.ControlKey && k.Name != jobevent.AnyName && k.Weight > 1 {
			set.weights[k.Name] = k.Weight
		}
		c := control{paused: k.Paused, maxRunning: unlimited}
		if k.MaxRunning != nil {
			c.maxRunning = *k.MaxRunning
		}
		if k.StartsPerSecond != nil {
			c.startsPerSecond = *k.StartsPerSecond
		}
		if c == (control{maxRunning: unlimited}) {
			continue
		}
		if k.Name == jobevent.AnyName {
			set.anyOf[k.Kind] = c
		} else {
			set.bySubject[Subject{k.Kind, k.Name}] = c
		}
		set.byJob = set.byJob || k.Kind == jobevent.ControlType || k.Kind == jobevent.ControlOwner
		set.byKey = set.byKey || k.Kind == jobevent.ControlKey
		set.limitsStarts = set.limitsStarts || c.startsPerSecond > 0
	}
	slices.SortFunc(set.created, func(a, b jobevent.CreatedQueue) int { return cmp.Compare(a.Name, b.Name) })
	set.digest = jobevent.QueuesDigest(set.created)
	return set
}

// Revision returns the number that the ledger has for the set.
func (c *Controls) Revision() int64 { return c.revision }

// Drains reports whether a worker gets no attempts.
// Why a drain is a control: docs/decisions/workers.md#a-drain-is-a-control
func (c *Controls) Drains(workerID string) bool { return c.workers[workerID].Paused }

// OfWorker returns the control of a worker that was ordered to drain, or to take attempts again; zero: it was not.
func (c *Controls) OfWorker(workerID string) jobevent.Control { return c.workers[workerID] }

// Created returns the queues that workers serve beside their own, by name, and the digest of the list.
func (c *Controls) Created() (queues []jobevent.CreatedQueue, digest string) {
	return c.created, c.digest
}

// CountsRunning reports whether some controls are about a job type, an owner or a fairness key, so that the ledger
// counts the attempts of these.
func (c *Controls) CountsRunning() bool { return c.byJob || c.byKey }

// of returns the control that applies to a subject: its own, or the one for all of its kind.
func (c *Controls) of(s Subject) (control, bool) {
	if own, some := c.bySubject[s]; some {
		return own, true
	}
	each, some := c.anyOf[s.Kind]
	return each, some && s.Name != ""
}

// none reports whether the controls hold nothing back.
func (c *Controls) none() bool { return len(c.bySubject) == 0 && len(c.anyOf) == 0 }

// weightOf returns how many starts a fairness key has in each round.
func (c *Controls) weightOf(key string) int { return max(1, c.weights[key]) }

// touching returns the controls by job type and owner to which a job is subject.
func (c *Controls) touching(jobType, owner string) []Subject {
	if !c.byJob {
		return nil
	}
	both := []Subject{{jobevent.ControlType, jobType}, {jobevent.ControlOwner, owner}}
	return slices.DeleteFunc(both, func(s Subject) bool {
		_, some := c.of(s)
		return !some || s.Name == ""
	})
}

// holding returns the controls by job type, owner and fairness key to which jobs of a class are subject.
func (c *Controls) holding(class Class) []Subject {
	subjects := c.touching(class.JobType, class.OwnerID)
	if key := keySubject(class.FairnessKey); c.byKey && key.Name != "" {
		if _, some := c.of(key); some {
			subjects = append(subjects, key)
		}
	}
	return subjects
}

// CountRunning adds n attempts of a class to the counts of the controls to which they are subject.
func (c *Controls) CountRunning(running map[Subject]int, class Class, n int) {
	for _, s := range c.holding(class) {
		running[s] += n
	}
}

// laneAnd names the part of a lane whose jobs are also subject to s.
// Why controls make lanes: docs/decisions/dispatch.md#a-control-puts-jobs-into-a-lane
func laneAnd(lane string, s Subject) string {
	if lane != "" {
		lane += " "
	}
	return lane + string(s.Kind) + ":" + strconv.Quote(s.Name)
}

// subjectsOf reads the name of a lane. Its jobs may have entered it under earlier controls.
func subjectsOf(lane string) []Subject {
	var subjects []Subject
	for lane != "" {
		kind, rest, _ := strings.Cut(lane, ":")
		quoted, err := strconv.QuotedPrefix(rest)
		if err != nil {
			return subjects
		}
		name, _ := strconv.Unquote(quoted) // a quoted prefix can be read
		subjects = append(subjects, Subject{jobevent.ControlKind(kind), name})
		_, lane, _ = strings.Cut(rest[len(quoted):], " ")
	}
	return subjects
}

// FoldControls returns the received controls that are newer than the kept ones, and the version of each received
// subject that is in force then.
func FoldControls(
	kept, received []jobevent.Control,
) (newer []jobevent.Control, applied []jobevent.ControlApplied) {
	versions, latest := map[Subject]int64{}, map[Subject]jobevent.Control{}
	for _, c := range kept {
		versions[Subject{c.Kind, c.Name}] = c.Version
	}
	var order []Subject
	for _, c := range received {
		s := Subject{c.Kind, c.Name}
		if before, some := latest[s]; !some {
			order = append(order, s)
		} else if c.Version <= before.Version {
			continue
		}
		latest[s] = c
	}
	for _, s := range order {
		c := latest[s]
		if c.Version > versions[s] {
			versions[s] = c.Version
			newer = append(newer, c)
		}
		applied = append(applied, jobevent.ControlApplied{Kind: s.Kind, Name: s.Name, Version: versions[s]})
	}
	return newer, applied
}
