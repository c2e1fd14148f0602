package cronspec

import "time"

// Next returns the first instant after the given one at which the schedule fires; zero if there is none
// within nine years.
//
// Where clocks are put forward, a time that does not exist stands for the first instant after the gap.
// Where they are put back, only the first of two equal times counts. So each time fires once. A schedule whose
// hour field covers every hour follows the clock instead: it fires whenever the clock shows a matching time,
// skips the times in the gap, and fires again in the hour that is repeated.
func (s Spec) Next(after time.Time) time.Time {
	if s.fields == nil {
		return s.nextEvery(after)
	}
	last := after.Year() + searchYears
	local := civil(after, offset(after, s.zone)) // the next time is after this one
	for at := after; at.Year() <= last; {
		begin, end := bounds(at, s.zone)
		now := offset(at, s.zone)
		if !s.everyHour() && !begin.IsZero() {
			// The end of the repeated hour.
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
			return end.In(time.UTC) // the time does not exist
		}
		at, local = end, civil(end.Add(-time.Second), then)
	}
	return time.Time{}
}

// everyHour reports whether the hour field covers every hour. Any other set of hours is fixed.
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

// bounds returns the period around an instant in which the zone's offset is constant; a zero time means no bound. Where
// clocks follow a rule instead of a table, Go's 366th day of a year ends before it begins; no clock changes on that
// day.
func bounds(at time.Time, zone *time.Location) (begin, end time.Time) {
	begin, end = at.In(zone).ZoneBounds()
	if !end.IsZero() && !end.After(at) {
		end = time.Date(at.In(time.UTC).Year()+1, 1, 1, 0, 0, 0, 0, time.UTC)
	}
	return begin, end
}

// civil returns the time that a clock with this offset shows, as if it were UTC.
func civil(at time.Time, offset time.Duration) time.Time { return at.In(time.UTC).Add(offset) }

func offset(at time.Time, zone *time.Location) time.Duration {
	_, seconds := at.In(zone).Zone()
	return time.Duration(seconds) * time.Second
}
