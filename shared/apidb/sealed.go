package apidb

import (
	"encoding/json"

	"github.com/jobweaver/jobweaver/shared/sealing"
)

// Closed stands in the place of a text that does not open.
const Closed = "[sealed]"

// Open has what the job holds readable, but for its history. What does not open is named in Sealed.
func (j *Job) Open(s *sealing.Sealer) {
	j.Payload = j.open(s, sealing.OfJob(j.JobID, sealing.Payload), j.Payload, "payload")
	// There is one only of the attempt that completed, after which there is none.
	completed := sealing.OfAttempt(j.JobID, j.Snapshot.Attempt, sealing.Output)
	j.Snapshot.Output = j.open(s, completed, j.Snapshot.Output, "output")
	if e := j.Snapshot.LastError; e != nil {
		e.Message = j.openText(s, sealing.OfJob(j.JobID, sealing.Message), e.Message, "lastError")
	}
	if p := j.Progress; p != nil {
		p.Message = j.openText(s, sealing.OfAttempt(j.JobID, j.Attempt, sealing.Progress), p.Message, "progress")
	}
}

// OpenHistory has the messages of the job's attempts readable.
func (j *Job) OpenHistory(s *sealing.Sealer) {
	for i := range j.Snapshot.History {
		m := &j.Snapshot.History[i]
		m.Message = j.openText(s, sealing.OfJob(j.JobID, sealing.Message), m.Message, "attempts")
	}
}

func (j *Job) open(s *sealing.Sealer, at sealing.Place, value json.RawMessage, member string) json.RawMessage {
	plain, err := s.Open(at, value)
	if err != nil {
		j.closed(member)
		return nil
	}
	return plain
}

func (j *Job) openText(s *sealing.Sealer, at sealing.Place, text, member string) string {
	plain, err := s.OpenText(at, text)
	if err != nil {
		j.closed(member)
		return Closed
	}
	return plain
}

func (j *Job) closed(member string) {
	if n := len(j.Sealed); n == 0 || j.Sealed[n-1] != member {
		j.Sealed = append(j.Sealed, member)
	}
}
