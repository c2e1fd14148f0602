package jobview

import (
	"encoding/json"

	"github.com/google/uuid"

	"github.com/jobweaver/jobweaver/shared/apidb/jobstore"
	"github.com/jobweaver/jobweaver/shared/apidb/logstore"
	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/sealing"
)

// Closed replaces a text that cannot be opened.
const Closed = "[sealed]"

// Open opens the sealed values of a job except its history. It names members that it cannot open in the job's Sealed.
func Open(j *jobstore.Job, s *sealing.Sealer) {
	j.Payload = open(j, s, sealing.OfJob(j.JobID, sealing.Payload), j.Payload, "payload")
	// Only a completed attempt has an output, and it is the last one.
	completed := sealing.OfAttempt(j.JobID, j.Snapshot.Attempt, sealing.Output)
	j.Snapshot.Output = open(j, s, completed, j.Snapshot.Output, "output")
	if e := j.Snapshot.LastError; e != nil {
		e.Message = openText(j, s, sealing.OfJob(j.JobID, sealing.Message), e.Message, "lastError")
	}
	if p := j.Progress; p != nil {
		p.Message = openText(j, s, sealing.OfAttempt(j.JobID, j.Attempt, sealing.Progress), p.Message, "progress")
	}
}

// OpenHistory opens the messages of a job's attempts.
func OpenHistory(j *jobstore.Job, s *sealing.Sealer) {
	for i := range j.Snapshot.History {
		m := &j.Snapshot.History[i]
		m.Message = openText(j, s, sealing.OfJob(j.JobID, sealing.Message), m.Message, "attempts")
	}
}

func open(j *jobstore.Job, s *sealing.Sealer, at sealing.Place, value json.RawMessage, member string) json.RawMessage {
	plain, err := s.Open(at, value)
	if err != nil {
		closed(j, member)
		return nil
	}
	return plain
}

func openText(j *jobstore.Job, s *sealing.Sealer, at sealing.Place, text, member string) string {
	plain, err := s.OpenText(at, text)
	if err != nil {
		closed(j, member)
		return Closed
	}
	return plain
}

func closed(j *jobstore.Job, member string) {
	if n := len(j.Sealed); n == 0 || j.Sealed[n-1] != member {
		j.Sealed = append(j.Sealed, member)
	}
}

// OpenLines opens the lines of a job's log, and reports whether it could open all of them.
func OpenLines(s *sealing.Sealer, id uuid.UUID, lines []logstore.Line) bool {
	all := true
	for i := range lines {
		line := &lines[i]
		plain, err := s.OpenText(sealing.OfAttempt(id, line.Attempt, sealing.LogLine), line.Text)
		if line.Text = plain; err != nil {
			line.Text, all = Closed, false
		}
	}
	return all
}

// OpenProgress opens the progress in workers' heartbeats.
func OpenProgress(s *sealing.Sealer, attempts []jobevent.ListedAttempt) {
	for _, a := range attempts {
		if a.Progress == nil {
			continue
		}
		plain, err := s.OpenText(sealing.OfAttempt(a.JobID, a.Attempt, sealing.Progress), a.Progress.Message)
		if a.Progress.Message = plain; err != nil {
			a.Progress.Message = Closed
		}
	}
}
