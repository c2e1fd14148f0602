package cronspec

import "time"

// Next is the first instant after the given one at which the schedule fires; zero where there is none
// within nine years.
//
// Where clocks are put forward, a time that does not exist stands for the first instant after the gap.
// Where they are put back, a time that comes twice counts the first time. So each fires once. Schedules
// of every hour do not follow this: they fire whenever the clock shows such a time, skip what it does not
// show, and go on through what it shows again.
func (s Spec) Next(after time.Time) time.Time {
	if s.fields == nil {
		return s.nextEvery(after)
	}
	last := after.Year() + searchYears
	local := civil(after, offset(after, s.zone)) // fires after this
	for at := after; at.Year() <= last; {
		begin, end := bounds(at, s.zone)
		now := offset(at, s.zone)
		if !s.everyHour() && !begin.IsZero() {
			// The end of what the clock shows a second time.
			again := civil(begin.Add(-time.Second), offset(begin.Add(-time.Second), s.zone))
			if again.After(local) {
				local = again
			}
		}
		next := s.fields.Next(local)
		if next.IsZero() {
			return next
		}
		if found := next.Add(-now); end.IsZero() || found.Before(end) {
			return found.In(time.UTC)
		}
		then := offset(end, s.zone)
		if !s.everyHour() && next.Before(civil(end, then)) {
			return end.In(time.UTC) // it does not exist
		}
		at, local = end, civil(end.Add(-time.Second), then)
	}
	return time.Time{}
}

// everyHour: any other set of hours is fixed ones.
func (s Spec) everyHour() bool {
	const hours = 1<<24 - 1
	return s.fields.Hour&hours == hours
}

func (s Spec) nextEvery(after time.Time) time.Time {
	if after.Before(s.anchor) {
		return s.anchor.Add(s.every).In(time.UTC)
	}
	seconds, every := after.Unix()-s.anchor.Unix(), int64(s.every/time.Second)
	return time.Unix(s.anchor.Unix()+(seconds/every+1)*every, 0).In(time.UTC)
}

// bounds is how long the zone has the offset that it has then; zero: for ever. Where clocks go by a rule
// instead of a table, Go lets the 366th day of a year end before it begins; no clock changes on it.
func bounds(at time.Time, zone *time.Location) (begin, end time.Time) {
	begin, end = at.In(zone).ZoneBounds()
	if !end.IsZero() && !end.After(at) {
		end = time.Date(at.In(time.UTC).Year()+1, 1, 1, 0, 0, 0, 0, time.UTC)
	}
	return begin, end
}

// civil is what a clock with this offset shows, as if that were UTC.
func civil(at time.Time, offset time.Duration) time.Time { return at.In(time.UTC).Add(offset) }

func offset(at time.Time, zone *time.Location) time.Duration {
	_, seconds := at.In(zone).Zone()
	return time.Duration(seconds) * time.Second
}
