package dispatch

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/jobweaver/jobweaver/shared/jobevent"
)

// Subject is a queue, a job type or an owner for which a control may be set.
type Subject struct {
	Kind jobevent.ControlKind
	Name string
}

func queueSubject(queue string) Subject { return Subject{jobevent.ControlQueue, queue} }

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
	bySubject    map[Subject]control // without those that hold nothing back
	byJob        bool                // some are about a job type or an owner
	limitsStarts bool                // some limit the starts a second
}

// control is a pause, a limit or both.
type control struct {
	paused          bool
	maxRunning      int     // unlimited: any number
	startsPerSecond float64 // zero: any number
}

const unlimited = math.MaxInt32

// NoControls is the set of an installation that never had a control.
var NoControls = &Controls{}

// NewControls makes the set of a revision.
func NewControls(revision int64, kept []jobevent.Control) *Controls {
	set := &Controls{revision: revision, bySubject: map[Subject]control{}}
	for _, k := range kept {
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
		set.bySubject[Subject{k.Kind, k.Name}] = c
		set.byJob = set.byJob || k.Kind != jobevent.ControlQueue
		set.limitsStarts = set.limitsStarts || c.startsPerSecond > 0
	}
	return set
}

// Revision returns the number that the ledger has for the set.
func (c *Controls) Revision() int64 { return c.revision }

// ByJob reports whether some controls are about a job type or an owner.
func (c *Controls) ByJob() bool { return c.byJob }

// LimitStarts reports whether some controls limit the starts a second, so that the ledger needs the time.
func (c *Controls) LimitStarts() bool { return c.limitsStarts }

// touching returns the controls by job type and owner to which a job is subject.
func (c *Controls) touching(jobType, owner string) []Subject {
	if !c.byJob {
		return nil
	}
	both := []Subject{{jobevent.ControlType, jobType}, {jobevent.ControlOwner, owner}}
	return slices.DeleteFunc(both, func(s Subject) bool {
		_, some := c.bySubject[s]
		return !some || s.Name == ""
	})
}

// CountRunning adds n attempts of a job type and an owner to the counts of the controls to which they are subject.
func (c *Controls) CountRunning(running map[Subject]int, jobType, owner string, n int) {
	for _, s := range c.touching(jobType, owner) {
		running[s] += n
	}
}

// laneOf names the lane of the jobs that are subject to the same controls by job type and owner: type:"EMAIL"
// owner:"acme". It is empty for jobs that are subject to none.
func (c *Controls) laneOf(jobType, owner string) string {
	var lane []byte
	for _, s := range c.touching(jobType, owner) {
		if len(lane) > 0 {
			lane = append(lane, ' ')
		}
		lane = append(append(lane, s.Kind...), ':')
		lane = strconv.AppendQuote(lane, s.Name)
	}
	return string(lane)
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

// FoldControls returns those received controls that are newer than the kept ones, and the version of each received
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
