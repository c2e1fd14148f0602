package protocol

import (
	"fmt"
	"math/bits"
	"strings"
)

// act is what happens in a step.
type act uint8

const (
	submits act = iota
	cancels
	retries
	hears
	projects
	dispatches
	hearsBeat
	asks
	reconciles
	hearsAnswer
	starts
	startsLate
	finishes
	beats
	declaresLost
	timesOut
	freezes
	wakes
	dies
	wipes
	goesRound
	stops
	deletes
	callsBack
	retires
	asksForCallback
)

// step names what happens, for a trace.
type step struct {
	act            act
	number, worker uint8
	choice         uint8 // which of the ways that the step can go
	killed         uint8 // 1 + the events that were published before the kill, a bit each; 0: not killed
}

func (b step) choosing(n int) step       { b.choice = uint8(n); return b }
func (b step) killedAfter(mask int) step { b.killed = uint8(mask + 1); return b }

var sentences = [...]string{
	submits:      "the client submits the job",
	cancels:      "the client cancels, command {n}",
	retries:      "the client retries, command {n}",
	projects:     "projection hears job-status: {shown}, command {n} answered",
	dispatches:   "the next attempt goes out",
	hearsBeat:    "watchdog hears that the attempt runs",
	asks:         "watchdog asks about the attempt",
	reconciles:   "reconcile",
	hearsAnswer:  "worker {w} hears that it has attempt {n}",
	starts:       "worker {w} starts attempt {n}",
	startsLate:   "worker {w} wakes and starts attempt {n}, as it was about to when it froze",
	finishes:     "worker {w} settles attempt {n}: {kind}",
	beats:        "worker {w} beats",
	declaresLost: "worker {w} settles attempt {n} of a silent worker: lost",
	timesOut:     "worker {w} settles attempt {n}: timed out",
	freezes:      "worker {w} freezes",
	wakes:        "worker {w} wakes",
	dies:         "worker {w} is killed and started anew",
	wipes:        "Kafka is wiped",
	goesRound:    "and so on for ever",
	stops:        "and nothing moves any more",
	deletes:      "the client deletes, command {n}",
	callsBack:    "the outside system calls back of attempt {n}: {kind}",
	retires:      "retention deletes the job",

	asksForCallback: "the deadline of attempt {n} has passed: {kind}",
}

var heard = [...][]string{
	jobCreated:    {"ingest hears job-created", ", and has no room yet", ", and cannot use it"},
	runJob:        {"worker {w} hears run-job {n}"},
	runJobCancel:  {"worker {w} hears run-job {n} with cancel"},
	attemptCancel: {"worker {w} hears attempt-cancel {n}"},
	jobCommand:    {"command hears command {n}"},
}

var shownNames = [...]string{"not ended", "COMPLETED", "FAILED", "CANCELLED", "under way", "WAITING"}

// describe tells a way, each worker under the number that it had at first.
func describe(way []taken) []string {
	lines := make([]string, len(way))
	first := [...]uint8{0, 1, 2}
	for i, t := range way {
		lines[i] = t.by.sentence(first[t.by.worker])
		if t.exchanged {
			first[1], first[2] = first[2], first[1]
		}
	}
	return lines
}

func (b step) sentence(worker uint8) string {
	text, number, kind := sentences[b.act], b.number, b.choice
	if b.act == hears {
		r := record(b.number)
		number = r.number()
		if r.topic() < attemptEnded {
			text = heard[r.topic()][0]
			if b.choice > 0 {
				text += heard[r.topic()][b.choice]
			}
		} else {
			text, kind = "outcome hears of attempt {n}: {kind}", uint8(r.topic()-attemptEnded)+1
			if r.topic() >= calledBack {
				text, kind = "outcome hears the callback of attempt {n}: {kind}", uint8(r.topic()-calledBack)+1
			}
		}
	}
	if b.killed > 0 {
		text += fmt.Sprintf(", and is killed with %d events said", bits.OnesCount8(b.killed-1))
	}
	return strings.NewReplacer(
		"{n}", fmt.Sprint(number), "{w}", fmt.Sprint(worker), "{kind}", string(kinds[kind]),
		"{shown}", shownNames[min(int(b.choice), len(shownNames)-1)],
	).Replace(text)
}
