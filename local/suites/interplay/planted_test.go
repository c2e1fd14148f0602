package interplay

import (
	"compress/gzip"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jobweaver/jobweaver/shared/client"
)

// records reads the records of real programs.
func records(t *testing.T) (list []*Record) {
	t.Helper()
	paths, err := filepath.Glob("testdata/*.json.gz")
	if err != nil || len(paths) == 0 {
		t.Fatalf("no records: %v", err)
	}
	for _, path := range paths {
		file, err := os.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		text, err := gzip.NewReader(file)
		if err != nil {
			t.Fatal(err)
		}
		r := &Record{}
		if err := json.NewDecoder(text).Decode(r); err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		_ = file.Close()
		list = append(list, r)
	}
	return list
}

func TestTheRecordsOfGoodProgramsHaveNoViolation(t *testing.T) {
	t.Parallel()
	for _, r := range records(t) {
		for _, v := range Check(r) {
			t.Errorf("%s: %s", r.Owner, v)
		}
	}
}

func TestADefectOfEachKindIsFoundByItsRule(t *testing.T) {
	t.Parallel()
	for _, rule := range Rules {
		t.Run(rule.Name, func(t *testing.T) {
			t.Parallel()
			plant := planted[rule.Name]
			if plant == nil {
				plant = plantedCalls[rule.Name]
			}
			if plant == nil {
				t.Fatal("no defect is planted for this rule")
			}
			for _, r := range records(t) {
				if !plant(factsOf(r)) {
					continue // it has nothing of this kind
				}
				for _, v := range Check(r) {
					if v.Rule.Name == rule.Name {
						return
					}
				}
				t.Fatalf("not found in the record of %s", r.Owner)
			}
			t.Fatal("no record has a place for it")
		})
	}
}

// any calls plant with each job until it succeeds.
func anyJob(f *facts, plant func(*client.Job) bool) (done bool) {
	f.each(func(j *client.Job) { done = done || plant(j) })
	return done
}

// ran returns a plant for a job that completed after one start, to which no command was given.
func ran(plant func(*facts, *client.Job, *Run)) func(*facts) bool {
	return func(f *facts) bool {
		return anyJob(f, func(j *client.Job) bool {
			list := f.runs[j.JobID]
			commands := len(f.may(j.JobID, "cancel")) + len(f.may(j.JobID, "reschedule")) + len(f.may(j.JobID, "delete")) + len(f.may(j.JobID, "retry"))
			if j.Status != client.Completed || len(list) != 1 || list[0].How != actOK || commands > 0 || f.specs[j.JobID] == nil ||
				!f.specs[j.JobID].Made || len(j.Attempts) != 1 || j.Attempts[0].StartedAt == nil || len(f.lives(j)) != 1 {
				return false
			}
			plant(f, j, list[0])
			return true
		})
	}
}

// two returns a plant for two such jobs, the second of which was asked for when the first was accepted.
func two(plant func(f *facts, a, b *client.Job)) func(*facts) bool {
	return func(f *facts) (done bool) {
		var jobs []*client.Job
		_ = anyJob(f, func(j *client.Job) bool {
			if s := f.specs[j.JobID]; s != nil && s.Made && s.Way != "batch" && s.Way != "flow" && len(f.runs[j.JobID]) > 0 && len(f.lives(j)) == 1 && j.Debounce == nil &&
				!f.deleted(j.JobID) {
				jobs = append(jobs, j)
			}
			return false
		})
		for _, a := range jobs {
			for _, b := range jobs {
				if !done && f.specs[a.JobID].At.Before(f.specs[b.JobID].Sent) {
					plant(f, a, b)
					done = true
				}
			}
		}
		return done
	}
}

func queuedAt(j *client.Job) time.Time {
	i := slices.IndexFunc(j.History, func(m client.Move) bool { return m.To == client.Queued })
	return j.History[i].At
}

func window(f *facts, at time.Time, l Limit) {
	f.Windows = append(f.Windows, &Window{Kind: "owner", Name: f.Owner, Limit: l, Applied: true, From: at.Add(-time.Second), To: at.Add(time.Second)})
}

// retire plants that retention has deleted a job.
func retire(f *facts, j *client.Job, at time.Time) {
	f.Faults = append(f.Faults, Fault{Kind: "retain", To: at, Retired: []Retired{{
		Job: j.JobID, Owner: f.Owner, Status: j.Status, EndedAt: j.UpdatedAt, DeletedAt: j.UpdatedAt.Add(retainFor),
	}}})
}

var planted = map[string]func(*facts) bool{
	"retained": ran(func(f *facts, j *client.Job, _ *Run) {
		j.OwnerID = f.Owner
		retire(f, j, j.UpdatedAt.Add(time.Hour))
	}),
	"free policies": two(func(f *facts, a, b *client.Job) {
		s := f.specs[b.JobID]
		retire(f, a, s.Sent.Add(-time.Millisecond))
		s.ID, s.By = a.JobID, "unique"
	}),
	"free keys": two(func(f *facts, a, b *client.Job) {
		retire(f, a, f.specs[b.JobID].Sent.Add(-time.Millisecond))
		f.specs[b.JobID].ID = a.JobID
	}),
	"deleted ids": ran(func(f *facts, j *client.Job, _ *Run) { f.specs[j.JobID].Deleted = j.JobID }),
	"free order": two(func(f *facts, a, b *client.Job) {
		at := time.Now()
		retire(f, a, at.Add(-time.Millisecond))
		f.Waits = append(f.Waits, Waiting{At: at, Job: b.JobID, By: []client.Block{{Kind: "dependency", ID: a.JobID}}})
	}),
	"not found": func(f *facts) bool {
		f.Asked = append(f.Asked, &Asked{Method: "GET", Path: "/api/jobs/x", Want: 404, Status: 200})
		return true
	},
	"not reached": func(f *facts) bool {
		for _, o := range f.Operations {
			o.Progress.Asked = 1
			f.Asked = append(f.Asked, &Asked{Want: 202, Status: 202, Answer: json.RawMessage(`{"operationId": "` + o.OperationID + `"}`)})
			return true
		}
		return false
	},
	"own jobs": ran(func(f *facts, j *client.Job, _ *Run) { j.OwnerID = f.Other }),
	"own keys": two(func(f *facts, a, b *client.Job) {
		a.OrderingKey, b.OrderingKey, a.OwnerID = "a key of two jobs", "a key of two jobs", b.OwnerID
		at := time.Now()
		f.Seen = append(f.Seen, Seen{At: at, Job: a.JobID, Status: a.Status, Version: a.Version})
		f.Waits = append(f.Waits, Waiting{At: at, Job: b.JobID, By: []client.Block{{Kind: "order", ID: b.OrderingKey}}})
	}),
	"own throttle": ran(func(_ *facts, j *client.Job, _ *Run) {
		at := j.CreatedAt.Add(time.Minute)
		j.Throttle, j.RunAt = &client.Throttle{Key: "a key of one job", PerMs: 100}, &at
	}),
	"own lists":    ran(func(f *facts, j *client.Job, _ *Run) { f.Others = append(f.Others, j.JobID) }),
	"own work":     ran(func(f *facts, _ *client.Job, r *Run) { r.Pull, r.Taker, r.Owner = true, f.Other, f.Owner }),
	"own tokens":   ran(func(_ *facts, _ *client.Job, r *Run) { r.Stolen = []int{409, 200, 409} }),
	"own commands": ran(func(_ *facts, j *client.Job, _ *Run) { j.History[0].Reason = "reschedule" }),
	"reported": ran(func(f *facts, j *client.Job, _ *Run) {
		j.JobType, j.Output = reportType, json.RawMessage(`{"location": "file:///x/1.csv", "sha256": "a", "rows": 1}`)
		f.Reports = map[string]*Report{j.JobID: {Text: nameIn(j.Payload), Digest: "b"}}
	}),
	"mailed": ran(func(_ *facts, j *client.Job, _ *Run) { j.JobType = emailType }),
	"mailed once": ran(func(f *facts, j *client.Job, r *Run) {
		f.Mails = []*Mail{{Job: j.JobID, How: actOK, At: r.Start}, {Job: j.JobID, How: actOK, At: r.Start.Add(time.Second)}}
	}),
	"addressed": ran(func(f *facts, j *client.Job, r *Run) {
		f.Mails = []*Mail{{Job: j.JobID, ID: "<" + j.JobID + ".2@shop.test>", To: recipients(f.Owner), How: actOK, At: r.Start}}
	}),
	"streamed": func(f *facts) bool {
		f.Streamed = slices.DeleteFunc(f.Streamed, func(e Streamed) bool { return e.Reload })
		for id, j := range f.Listed {
			f.Streamed = append(f.Streamed, Streamed{Job: id, Owner: f.Owner, Status: client.Running, Version: j.Version - 1})
			return true
		}
		return false
	},
	"stream in order": ran(func(f *facts, j *client.Job, _ *Run) {
		f.Streamed = append(f.Streamed, Streamed{Job: j.JobID, Owner: f.Owner, Status: j.Status, Version: j.Version},
			Streamed{Job: j.JobID, Owner: f.Owner, Status: client.Running, Version: j.Version})
	}),
	"own stream": ran(func(f *facts, j *client.Job, _ *Run) {
		f.Streamed = append(f.Streamed, Streamed{Job: j.JobID, Owner: "another", Status: j.Status, Version: j.Version})
	}),
	"accepted": ran(func(f *facts, j *client.Job, _ *Run) { delete(f.Jobs, j.JobID) }),
	"nothing else": ran(func(f *facts, j *client.Job, _ *Run) {
		f.Committed = map[string]bool{j.JobID: false}
	}),
	"ends": ran(func(_ *facts, j *client.Job, _ *Run) { j.Status = client.Running }),
	"named": ran(func(f *facts, j *client.Job, _ *Run) {
		f.Open = []*client.Job{{JobID: j.JobID, Status: client.Pending}}
	}),
	"history":   ran(func(_ *facts, j *client.Job, _ *Run) { j.History[len(j.History)-1].From = client.Failed }),
	"completed": ran(func(_ *facts, _ *client.Job, r *Run) { r.How = actFail }),
	"failed":    ran(func(_ *facts, j *client.Job, _ *Run) { j.RetryCount = 1 }),
	"cancelled": ran(func(_ *facts, j *client.Job, _ *Run) { j.Status, j.BatchID, j.Schedule = client.Cancelled, "", nil }),
	"cancel holds": ran(func(f *facts, j *client.Job, _ *Run) {
		at := queuedAt(j).Add(-10 * time.Second)
		f.Asked = append(f.Asked, &Asked{Method: "POST", Path: "/api/jobs/" + j.JobID + "/cancel", Status: 202, Sent: at, At: at, Jobs: []string{j.JobID}})
	}),
	"changed": ran(func(f *facts, j *client.Job, _ *Run) {
		j.History[0].Reason = "change"
		f.Asked = append(f.Asked, &Asked{
			Method: "PATCH", Path: "/api/jobs/" + j.JobID, Status: 202, Jobs: []string{j.JobID}, Body: json.RawMessage(`{"priority": 8}`),
		})
	}),
	"again": ran(func(f *facts, j *client.Job, _ *Run) {
		f.Asked = append(f.Asked, &Asked{Method: "POST", Path: "/api/jobs/old/run-again", Status: 202, Jobs: []string{j.JobID}})
	}),
	"attempts": ran(func(f *facts, _ *client.Job, r *Run) {
		again := *r
		again.Start = r.Start.Add(time.Second)
		f.Record.Runs = append(f.Record.Runs, &again)
	}),
	"apart": func(f *facts) bool {
		return anyJob(f, func(j *client.Job) bool {
			list := f.runs[j.JobID]
			if len(list) < 2 || list[0].Cut || list[0].How == actLater {
				return false
			}
			list[0].End = list[1].Start.Add(time.Second)
			return true
		})
	},
	"after its end": ran(func(f *facts, j *client.Job, _ *Run) {
		at := j.Attempts[0].StartedAt.Add(-5 * time.Second)
		f.Seen = append([]Seen{{At: at, Job: j.JobID, Status: client.Cancelled, Version: 0, Attempt: 1}}, f.Seen...)
	}),
	"expires": ran(func(_ *facts, j *client.Job, _ *Run) {
		at := j.Attempts[0].StartedAt.Add(-5 * time.Second)
		j.ExpiresAt = &at
	}),
	"not before": ran(func(_ *facts, j *client.Job, r *Run) {
		at := r.Start.Add(time.Second)
		j.RunAt = &at
	}),
	"delays": func(f *facts) bool {
		return anyJob(f, func(j *client.Job) bool {
			for i, r := range f.runs[j.JobID] {
				if r.How == actFail && i+1 < len(f.runs[j.JobID]) && f.spec(j.JobID) != nil && len(f.may(j.JobID, "reschedule")) == 0 && settled(r) &&
					len(f.lives(j)) == 1 && f.runs[j.JobID][i+1].Attempt == r.Attempt+1 {
					r.End = f.runs[j.JobID][i+1].Start
					return true
				}
			}
			return false
		})
	},
	"received": ran(func(f *facts, j *client.Job, r *Run) {
		f.Events = append(f.Events, &Sent{ID: j.JobID + " 0", At: r.Start})
		r.Waits = append(r.Waits, WaitSeen{Name: j.JobID + " 0", Asked: r.Start.Add(time.Second), Status: client.WaitOpen})
	}),
	"checkpoint": ran(func(_ *facts, _ *client.Job, r *Run) { r.Had = `{"saved":9}` }),
	"steps": ran(func(f *facts, j *client.Job, r *Run) {
		s := &StepRun{Job: j.JobID, Step: "first", Start: r.Start}
		f.Steps = append(f.Steps, s, s)
	}),
	"callbacks": func(f *facts) bool {
		for _, b := range f.Backs {
			if b.How == backWrong {
				b.Answer = 200
				return true
			}
		}
		return false
	},
	"calls are signed": ran(func(_ *facts, _ *client.Job, r *Run) { r.Wrong = "no matching signature found" }),
	"settles":          ran(func(_ *facts, _ *client.Job, r *Run) { r.Settled = []int{200, 409} }),
	"one at a time": two(func(f *facts, a, b *client.Job) {
		a.OrderingKey, b.OrderingKey, a.OwnerID, b.OwnerID = "k", "k", "", ""
		list := f.runs[a.JobID]
		list[len(list)-1].How, list[len(list)-1].Cut = actOK, false
		list[len(list)-1].End = f.runs[b.JobID][0].Start.Add(time.Second)
		f.runs[a.JobID][0].Start = f.runs[b.JobID][0].Start.Add(-time.Second)
	}),
	"in order": two(func(f *facts, a, b *client.Job) {
		a.OrderingKey, b.OrderingKey, a.OwnerID, b.OwnerID = "k", "k", "", ""
		f.specs[a.JobID].Way, f.specs[b.JobID].Way = "one", "one"
		f.runs[a.JobID][0].Start = f.runs[b.JobID][0].Start.Add(time.Second)
	}),
	"once": two(func(f *facts, a, b *client.Job) {
		for _, j := range []*client.Job{a, b} {
			s := f.specs[j.JobID]
			s.Job.Idem, s.Job.OwnID, s.Way = "k", false, "one"
		}
	}),
	"unique": two(func(f *facts, a, b *client.Job) {
		a.OwnerID, b.OwnerID = f.Owner, f.Owner
		f.specs[b.JobID].Way = "one"
		a.Unique, b.Unique = &client.Unique{Key: "k"}, &client.Unique{Key: "k"}
		a.History[len(a.History)-1].At = f.specs[b.JobID].At.Add(time.Second)
	}),
	"dropped": two(func(f *facts, a, b *client.Job) {
		a.OwnerID, b.OwnerID = f.Owner, f.Owner
		f.specs[b.JobID].Way = "one"
		a.Singleton, b.Singleton = &client.Singleton{Key: "k"}, &client.Singleton{Key: "k", Else: "drop"}
		a.History[len(a.History)-1].At = f.specs[b.JobID].At.Add(time.Second)
	}),
	"throttle": two(func(f *facts, a, b *client.Job) {
		at := time.Now()
		for _, j := range []*client.Job{a, b} {
			j.OwnerID, j.Throttle, j.RunAt = f.Owner, &client.Throttle{Key: "k", PerMs: 1000}, &at
		}
		f.Asked = nil // among them a reschedule
	}),
	"debounce": ran(func(f *facts, j *client.Job, _ *Run) {
		s := f.specs[j.JobID]
		s.Job.Debounce, s.Job.Name, s.Way, s.Status = "k", "another", "one", 202
		f.Asked = nil // among them a patch
	}),
	"pause": ran(func(f *facts, j *client.Job, _ *Run) {
		window(f, queuedAt(j), Limit{Paused: true})
		j.OwnerID = f.Owner
	}),
	"pause is named": ran(func(f *facts, j *client.Job, _ *Run) {
		window(f, queuedAt(j), Limit{Paused: true})
		f.Blocked = []Blocked{{Window: len(f.Windows) - 1, Job: j.JobID, Status: client.Pending}}
	}),
	"maxRunning": ran(func(f *facts, j *client.Job, r *Run) {
		window(f, queuedAt(j), Limit{MaxRunning: new(0)})
		j.OwnerID, r.End = f.Owner, r.Start.Add(time.Second)
	}),
	"startsPerSecond": two(func(f *facts, a, b *client.Job) {
		window(f, queuedAt(a), Limit{Rate: new(0.01)})
		for _, j := range []*client.Job{a, b} {
			j.OwnerID = f.Owner
			for i := range j.History {
				j.History[i].At = queuedAt(a)
			}
		}
	}),
	"after": two(func(f *facts, a, b *client.Job) {
		b.After, b.Conditions = []string{a.JobID}, map[string]string{a.JobID: "ended"}
		a.History[len(a.History)-1].At = f.runs[b.JobID][0].Start.Add(time.Second)
	}),
	"skipped": two(func(_ *facts, a, b *client.Job) {
		b.After, b.Conditions = []string{a.JobID}, map[string]string{a.JobID: "ended"}
		b.LastError = &client.Failure{ErrorCode: "SCHEDULER.DEPENDENCY_FAILED"}
	}),
	"outputs": func(f *facts) bool {
		return anyJob(f, func(j *client.Job) bool {
			s := f.spec(j.JobID)
			if s == nil || s.Job.Uses == "" || f.source(j, s.Job.Uses) == nil || len(f.runs[j.JobID]) == 0 || j.Element != nil || j.RunAgainOf != "" {
				return false
			}
			f.runs[j.JobID][0].Data = json.RawMessage(`{"in": "another output"}`)
			return true
		})
	},
	"fan-out": func(f *facts) bool {
		return anyJob(f, func(j *client.Job) bool {
			if j.Element == nil || len(f.runs[j.JobID]) == 0 {
				return false
			}
			j.Element.Index++
			return true
		})
	},
	"batch": func(f *facts) bool {
		for _, g := range f.groups() {
			g.Counts[client.Completed]++
			return true
		}
		return false
	},
	"follow-up": func(f *facts) bool {
		for _, g := range f.groups() {
			for id, j := range f.Jobs {
				if slices.Contains(j.Tags, "follows-"+g.name) && f.again(g) == 0 {
					second := *j
					second.JobID = strings.Replace(id, "-", "+", 1)
					f.Jobs[second.JobID] = &second
					return true
				}
			}
		}
		return false
	},
	"summary": func(f *facts) bool {
		for _, g := range f.groups() {
			for _, r := range f.runs[g.FollowUpJobID] {
				r.Data = json.RawMessage(`{"in": {"status": "OPEN"}}`)
				return true
			}
		}
		return false
	},
	"operation": func(f *facts) bool {
		for _, o := range f.Operations {
			o.Progress.Applied++
			return true
		}
		return false
	},
	"ticks": func(f *facts) bool {
		for name, list := range f.Ticks {
			for _, t := range list {
				f.Ticks[name] = append(list, t)
				return t.Reason != "manual"
			}
		}
		return false
	},
	"overlap": two(func(f *facts, a, b *client.Job) {
		f.Program.Steps = []Step{{Do: "schedule-put", Name: "c0", Overlap: "skip"}}
		a.Schedule = &client.Tick{Name: f.Base + "-c0", At: a.CreatedAt}
		b.Schedule = &client.Tick{Name: f.Base + "-c0", At: a.CreatedAt.Add(time.Second)}
		a.History[len(a.History)-1].At = f.runs[b.JobID][0].Start.Add(time.Second)
	}),
	"deliveries": func(f *facts) bool {
		for id, list := range f.Deliveries {
			if len(list) > 0 && f.Jobs[id] != nil {
				f.Arrivals = slices.DeleteFunc(f.Arrivals, func(a *Arrival) bool { return a.Job == id })
				return true
			}
		}
		return false
	},
	"signature": func(f *facts) bool {
		for _, a := range f.Arrivals {
			a.Wrong = "no matching signature found"
			return true
		}
		return false
	},
	"views": ran(func(f *facts, j *client.Job, _ *Run) { f.Listed[j.JobID].Version++ }),
	"etag":  ran(func(f *facts, j *client.Job, _ *Run) { f.Unchanged[j.JobID] = 200 }),
	"filters": func(f *facts) bool {
		for text, list := range f.Filters {
			if len(list) > 0 {
				f.Filters[text] = list[1:]
				return true
			}
		}
		return false
	},
	"statistics": func(f *facts) bool { f.Counts[client.Completed]++; return true },
	"dead groups": func(f *facts) bool {
		f.Dead = map[string]int{"NONE": 1}
		return true
	},
	"deleted":  ran(func(f *facts, j *client.Job, _ *Run) { f.Remaining = []string{j.JobID} }),
	"answered": func(f *facts) bool { f.Asked[0].Status = 500; return true },
	"understood": func(f *facts) bool {
		f.Troubles = append(f.Troubles, fmt.Sprintf("%s was answered 400", "/api/jobs"))
		return true
	},
}
