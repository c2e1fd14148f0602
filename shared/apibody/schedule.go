package apibody

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jobweaver/jobweaver/shared/apierror"
	"github.com/jobweaver/jobweaver/shared/cronspec"
	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/jobspec"
	"github.com/jobweaver/jobweaver/shared/strictjson"
)

// MaxScheduleName is the longest name of a schedule.
const MaxScheduleName = 100

// What happens to a tick when the job of the tick before has not ended.
const (
	OverlapAllow  = "allow"
	OverlapSkip   = "skip"
	OverlapCancel = "cancel"
)

// What happens to ticks that passed while no instance of cron ran.
const (
	MissedSkip = "skip"
	MissedOne  = "one" // the last of them fires
	MissedAll  = "all"
)

// Schedule is a job request that is repeated, with its defaults filled in.
type Schedule struct {
	Name     string // empty: the path has it
	Cron     string
	TimeZone string
	Job      jobspec.Request
	JobJSON  json.RawMessage // as sent
	Overlap  string
	Missed   string
	Paused   bool
	StartAt  *time.Time // UTC, in microseconds
	EndAt    *time.Time

	DefinedBy string // the job type whose workers define it in code; empty: a request makes it
}

// MaxDefined is how many schedules a job type may define.
const MaxDefined = 100

// DecodeDefinedSchedules reads the schedules that the workers of a job type define. The error is an *apierror.Error.
func DecodeDefinedSchedules(body []byte, jobType string) (all []Schedule, err error) {
	r := newReader(body)
	var texts []json.RawMessage
	complete := r.Object(func() {
		if string(r.Name) != "schedules" {
			r.Unknown()
			return
		}
		texts = []json.RawMessage{}
		r.Array(MaxDefined, func(int) { texts = append(texts, json.RawMessage(r.Raw().Clone())) })
	})
	if complete && texts == nil {
		r.BadAt("schedules", "is required")
	}
	p := r.Close()
	names := map[string]bool{}
	for i, text := range texts {
		s, err := DecodeSchedule(text)
		s.DefinedBy = jobType
		at := fmt.Sprintf("schedules[%d]", i)
		p.AddAll(within(at, err))
		switch {
		case err != nil:
		case s.Name == "":
			p.Add(at+".name", "is required")
		case names[s.Name]:
			p.Add(at+".name", "is there twice")
		case s.Job.JobType != jobType:
			p.Add(at+".job.jobType", "must be "+jobType)
		case s.Paused:
			p.Add(at+".paused", "is not for a schedule in code")
		}
		names[s.Name] = true
		all = append(all, s)
	}
	return all, p.Err("job request")
}

// DecodeSchedule reads a schedule, as Decode reads a job. The error is an *apierror.Error.
func DecodeSchedule(body []byte) (Schedule, error) {
	r := newReader(body)
	s, complete := r.schedule()
	p := r.Close()
	if complete && s.JobJSON != nil {
		var wrong strictjson.Problems
		s.Job, wrong = decodeScheduled(s.JobJSON)
		p.AddAll(wrong)
	}
	if complete && !slices.ContainsFunc(p, func(d apierror.Detail) bool { return d.Path == "cron" }) {
		at := s
		if _, err := cronspec.Zone(s.TimeZone); err != nil {
			at.TimeZone = "UTC" // a wrong zone is a problem of its own
		}
		if _, err := at.Spec(time.Now()); err != nil {
			p.Add("cron", err.Error())
		}
	}
	if err := p.Err("job request"); err != nil {
		return Schedule{}, err
	}
	return s, nil
}

// Belong gives the job to an owner, whatever owner its request names.
func (s *Schedule) Belong(owner string) error {
	if s.Job.OwnerID == owner {
		return nil
	}
	var members map[string]json.RawMessage
	if err := json.Unmarshal(s.JobJSON, &members); err != nil {
		return fmt.Errorf("read a valid job: %w", err)
	}
	delete(members, "ownerId")
	var err error
	if s.JobJSON, err = jobevent.Encode(members); err != nil {
		return fmt.Errorf("write a valid job: %w", err)
	}
	s.Job.OwnerID = owner
	return nil
}

// Spec returns the times at which the schedule fires. The error is a sentence without a subject.
func (s *Schedule) Spec(anchor time.Time) (cronspec.Spec, error) {
	zone, err := cronspec.Zone(s.TimeZone)
	if err != nil {
		return cronspec.Spec{}, fmt.Errorf("has no time zone: %w", err)
	}
	return cronspec.Parse(s.Cron, zone, anchor)
}

// Validate checks what Decode cannot know. The error is an *apierror.Error.
func (s *Schedule) Validate(rules jobspec.Rules) error {
	p := ofJob(s.Job.Validate(rules))
	now := rules.Now
	if now.IsZero() {
		now = time.Now()
	}
	if s.StartAt != nil && s.StartAt.Sub(now) > jobspec.MaxAhead {
		p.Add("startAt", fmt.Sprintf("must be at most %d days ahead", jobspec.MaxAhead/(24*time.Hour)))
	}
	if s.EndAt != nil && !s.EndAt.After(now) && s.DefinedBy == "" { // code keeps it, and starts again later
		p.Add("endAt", "must not be over")
	}
	return p.Err("job request")
}

// schedule reads the members of a schedule. complete reports whether its job can be checked.
func (r reader) schedule() (s Schedule, complete bool) {
	s = Schedule{TimeZone: "UTC", Overlap: OverlapAllow, Missed: MissedOne}
	given := map[string]bool{}
	complete = r.Object(func() {
		given[string(r.Name)] = true
		switch string(r.Name) {
		case "name":
			s.Name = r.Checked(checkScheduleName)
		case "cron":
			s.Cron, _ = r.Text(jobspec.MaxJobBytes)
		case "timeZone":
			s.TimeZone = r.Checked(checkZone)
		case "job":
			s.JobJSON = json.RawMessage(r.Raw())
		case "overlap":
			s.Overlap = r.OneOf([]string{OverlapAllow, OverlapSkip, OverlapCancel})
		case "missed":
			s.Missed = r.OneOf([]string{MissedSkip, MissedOne, MissedAll})
		case "paused":
			s.Paused = r.Boolean()
		case "startAt":
			s.StartAt = r.Instant()
		case "endAt":
			s.EndAt = r.Instant()
		default:
			r.Unknown()
		}
	})
	for _, name := range []string{"cron", "job"} {
		if complete && !given[name] {
			r.BadAt(name, "is required")
		}
	}
	if complete && s.StartAt != nil && s.EndAt != nil && !s.EndAt.After(*s.StartAt) {
		r.BadAt("endAt", "must be after startAt")
	}
	return s, complete
}

func checkZone(name string) string {
	if _, err := cronspec.Zone(name); err != nil {
		return err.Error()
	}
	return ""
}

// IsScheduleName reports whether a schedule may have this name.
func IsScheduleName(name string) bool { return checkScheduleName(name) == "" }

func checkScheduleName(name string) string {
	ok := name != "" && len(name) <= MaxScheduleName && strings.IndexByte("._-", name[0]) < 0
	for i := 0; ok && i < len(name); i++ {
		c := name[i]
		ok = c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || c == '.' || c == '_' || c == '-'
	}
	if !ok {
		return fmt.Sprintf("must be small letters, digits, '.', '_' or '-', at most %d together, "+
			"and begin with a letter or digit", MaxScheduleName)
	}
	return ""
}

// decodeScheduled reads a schedule's job. It refuses members that make sense only for a single job.
func decodeScheduled(body json.RawMessage) (jobspec.Request, strictjson.Problems) {
	req, err := jobspec.Decode(body)
	if err != nil {
		return req, ofJob(err)
	}
	var p strictjson.Problems
	var given map[string]json.RawMessage
	if err := json.Unmarshal(body, &given); err != nil {
		p.Add("job", "is not valid JSON")
	}
	for _, name := range []string{
		"runAt", "delayMs", "expiresAt", "idempotencyKey", "jobId", "after", "onDependencyFailure", "batchId",
		"debounce",
	} {
		if given[name] != nil {
			p.Add("job."+name, "is not for a job that comes again and again")
		}
	}
	return req, p
}

// OfJob prefixes the paths in an error about a schedule's job with the job's place in the schedule.
func OfJob(err error) error { return ofJob(err).Err("job request") }

// ofJob returns the problems of a schedule's job, with their paths in the schedule.
func ofJob(err error) strictjson.Problems { return within("job", err) }

// Within returns an error about the schedule at a place of a list.
func Within(at string, err error) error { return within(at, err).Err("job request") }

func within(at string, err error) strictjson.Problems {
	var refused *apierror.Error
	if err == nil || !errors.As(err, &refused) {
		return nil
	}
	var p strictjson.Problems
	for _, d := range refused.Details {
		p.Add(strings.TrimSuffix(at+"."+d.Path, "."), d.Message)
	}
	if len(p) == 0 { // too large
		p.Add(at, refused.Message)
	}
	return p
}
