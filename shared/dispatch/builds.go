package dispatch

import (
	"slices"
	"strings"
	"time"

	"github.com/jobweaver/jobweaver/shared/jobevent"
)

// onBuild is the kind of the subject of a lane for the jobs of one type that stay on one build: runs:"RESIZE"
// build:"v1.4.0". It is not a control. Dispatching knows the build of a job only by its lane.
const onBuild jobevent.ControlKind = "build"

// buildsKept is how long the watchdog looks for lanes of builds after the last one was seen: much longer than a
// transaction takes to roll back.
const buildsKept = 15 * time.Minute

// LaneOnBuild returns the lane of a job that is to stay on a build from now on.
func LaneOnBuild(lane, jobType, build string) string {
	kept := laneAnd(laneAnd("", Subject{runs, jobType}), Subject{onBuild, build})
	for _, s := range subjectsOf(lane) {
		if s.Kind != onBuild && s.Kind != runs && s.Kind != runsFor {
			kept = laneAnd(kept, s)
		}
	}
	return kept
}

// buildOf returns the build on which the jobs of a lane stay; empty: any.
func buildOf(lane string) string {
	if !strings.Contains(lane, string(onBuild)+":") {
		return ""
	}
	for _, s := range subjectsOf(lane) {
		if s.Kind == onBuild {
			return s.Name
		}
	}
	return ""
}

// HasBuilds reports whether the builds of the live workers matter.
func (l *Ledger) HasBuilds() bool {
	for _, lanes := range l.lanes {
		for lane := range lanes {
			if buildOf(lane) != "" {
				return true
			}
		}
	}
	return false
}

// HadBuilds reports whether jobs that stay on a build waited lately. A change that the ledger has missed may be about
// one of them.
func (l *Ledger) HadBuilds() bool { return !l.buildsAt.IsZero() }

func (l *Ledger) tidyBuilds() {
	switch {
	case l.HasBuilds():
		l.buildsAt = l.At
	case l.At.Sub(l.buildsAt) > buildsKept:
		l.buildsAt = time.Time{}
	}
}

// staysOn reports whether a job of a queue has to stay on a build: it does as long as a live worker of the build runs
// its type, even if that one has no room.
func (l *Ledger) staysOn(queue, build, jobType string) bool {
	return build != "" && slices.ContainsFunc(serving(l.live, queue), func(w *Worker) bool {
		return w.Build == build && w.runs(jobType, nil)
	})
}

// takes returns a function that reports whether a target takes a job, since many targets are checked for one job.
func (p *places) takes(jobType string, owner *string, build string) func(Target) bool {
	stays := p.l.staysOn(p.queue, build, jobType)
	return func(t Target) bool { return t.worker.runs(jobType, owner) && (!stays || t.worker.isOf(build)) }
}

// roomOnBuild returns how many free targets take jobs of a lane that stays on a build.
func (p *places) roomOnBuild(build, jobType string) (room int) {
	takes := p.takes(jobType, nil, build)
	for _, t := range p.free {
		if takes(t) {
			room++
		}
	}
	return room
}

// isOf reports whether the worker is of a build.
func (w *Worker) isOf(build string) bool { return w != nil && w.Build == build }
