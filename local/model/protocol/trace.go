package protocol

import (
	"fmt"
	"math/bits"
	"strings"
)

// act is the kind of a step.
type act uint8

const (
	submits act = iota
	cancels
	retries
	consumes
	projects
	dispatches
	receivesHeartbeat
	asks
	reconciles
	receivesAnswer
	starts
	startsLate
	finishes
	sendsHeartbeat
	declaresLost
	timesOut
	freezes
	wakes
	dies
	wipes
	crashes
	goesRound
	stops
	deletes
	callsBack
	retires
	asksForCallback
)

// step describes a step for a trace.
type step struct {
	act            act
	number, worker uint8
	choice         uint8 // which of its possible results the step has
	killed         uint8 // 1 + the events that were published before the kill, one bit each; 0: not killed
}

func (b step) choosing(n int) step       { b.choice = uint8(n); return b }
func (b step) killedAfter(mask int) step { b.killed = uint8(mask + 1); return b }

var sentences = [...]string{
	submits:           "the client submits the job",
	cancels:           "the client cancels, command {n}",
	retries:           "the client retries, command {n}",
	projects:          "projection consumes job-status: {shown}, command {n} answered",
	dispatches:        "the next attempt is dispatched",
	receivesHeartbeat: "watchdog receives a heartbeat with the running attempt",
	asks:              "watchdog asks about the attempt",
	reconciles:        "reconcile",
	receivesAnswer:    "worker {w} receives the answer to its claim of attempt {n}",
	starts:            "worker {w} starts attempt {n}",
	startsLate:        "worker {w} wakes and starts attempt {n}, as it was about to when it froze",
	finishes:          "worker {w} settles attempt {n}: {kind}",
	sendsHeartbeat:    "worker {w} sends a heartbeat",
	declaresLost:      "worker {w} settles attempt {n} of a silent worker: lost",
	timesOut:          "worker {w} settles attempt {n}: timed out",
	freezes:           "worker {w} freezes",
	wakes:             "worker {w} wakes",
	dies:              "worker {w} is killed and restarted",
	wipes:             "Kafka is wiped",
	crashes:           "the API's database loses the statuses that it has not flushed",
	goesRound:         "and so on for ever",
	stops:             "and no step is left",
	deletes:           "the client deletes, command {n}",
	callsBack:         "the outside system calls back for attempt {n}: {kind}",
	retires:           "retention deletes the job",

	asksForCallback: "the deadline of attempt {n} has passed: {kind}",
}

var consumed = [...][]string{
	jobCreated:    {"ingest consumes job-created", ", and has no room yet", ", and cannot use it"},
	runJob:        {"worker {w} consumes run-job {n}"},
	runJobCancel:  {"worker {w} consumes run-job {n} with cancel"},
	attemptCancel: {"worker {w} consumes attempt-cancel {n}"},
	jobCommand:    {"command consumes command {n}"},
}

var shownNames = [...]string{"not ended", "COMPLETED", "FAILED", "CANCELLED", "under way", "WAITING"}

// describe returns a path as sentences, with the number that each worker had at first.
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
	if b.act == consumes {
		r := record(b.number)
		number = r.number()
		if r.topic() < attemptEnded {
			text = consumed[r.topic()][0]
			if b.choice > 0 {
				text += consumed[r.topic()][b.choice]
			}
		} else {
			text, kind = "outcome consumes the outcome of attempt {n}: {kind}", uint8(r.topic()-attemptEnded)+1
			if r.topic() >= calledBack {
				text, kind = "outcome consumes the callback of attempt {n}: {kind}", uint8(r.topic()-calledBack)+1
			}
		}
	}
	if b.killed > 0 {
		text += fmt.Sprintf(", and is killed with %d events published", bits.OnesCount8(b.killed-1))
	}
	return strings.NewReplacer(
		"{n}", fmt.Sprint(number), "{w}", fmt.Sprint(worker), "{kind}", string(kinds[kind]),
		"{shown}", shownNames[min(int(b.choice), len(shownNames)-1)],
	).Replace(text)
}
