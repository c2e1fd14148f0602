// Package cronspec computes when a schedule fires: cron expressions and @every, in a time zone. go-cron parses the
// fields and searches a calendar without time zones. This package turns the times that it finds into instants, also
// where clocks are put forward or back.
//
// Why go-cron alone is not enough: docs/decisions/scheduling.md#a-schedules-ticks-are-calendar-times
package cronspec

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"
	_ "time/tzdata" // the same zones in every process, whatever the machine has

	"github.com/netresearch/go-cron"
)

const (
	// MaxLength is the longest expression, in bytes.
	MaxLength = 255
	// MaxEvery is the longest interval of @every.
	MaxEvery = 366 * 24 * time.Hour

	// searchYears bounds the search for the next instant. February 29 is up to eight years away.
	searchYears = 9
)

// Spec is when a schedule fires.
type Spec struct {
	fields *cron.SpecSchedule // in a calendar without zones; nil: an interval
	zone   *time.Location
	every  time.Duration
	anchor time.Time // the start of the intervals
}

// Parse reads an expression: five fields, six with seconds in front, a name as @daily, or @every with a
// duration, which counts from anchor. The error is a sentence without a subject, and names the field that
// is wrong.
func Parse(spec string, zone *time.Location, anchor time.Time) (Spec, error) {
	if len(spec) > MaxLength {
		return Spec{}, fmt.Errorf("must have at most %d bytes", MaxLength)
	}
	parsed := Spec{zone: zone, anchor: anchor.Truncate(time.Second)}
	var err error
	switch {
	case strings.HasPrefix(spec, "@every "):
		parsed.every, err = parseEvery(strings.TrimPrefix(spec, "@every "))
		return parsed, err
	case strings.HasPrefix(spec, "@"):
		parsed.fields, err = parseName(spec)
	default:
		parsed.fields, err = parseFields(strings.Fields(spec))
	}
	if err != nil {
		return Spec{}, err
	}
	if parsed.fields.Next(time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)).IsZero() {
		return Spec{}, errors.New("never fires: none of its months has such a day")
	}
	return parsed, nil
}

var zoneNames = regexp.MustCompile(`^[A-Z][A-Za-z0-9_+-]*(/[A-Za-z0-9_+-]+)*$`)

// Zone returns the time zone with an IANA name.
func Zone(name string) (*time.Location, error) {
	if zoneNames.MatchString(name) && len(name) <= MaxLength && name != "Local" {
		if zone, err := time.LoadLocation(name); err == nil {
			return zone, nil
		}
	}
	return nil, errors.New("must be the name of a time zone, as UTC or Europe/Berlin")
}

func parseEvery(text string) (time.Duration, error) {
	every, err := time.ParseDuration(text)
	if err != nil || every < time.Second || every > MaxEvery || every%time.Second != 0 {
		return 0, fmt.Errorf("@every: must be followed by whole seconds from 1s to %dh, as 90s or 1h30m", MaxEvery/time.Hour)
	}
	return every, nil
}

const fieldOptions = cron.Second | cron.Minute | cron.Hour | cron.Dom | cron.Month | cron.Dow

// parser has cron's rule for days: if both fields restrict them, one that matches is enough.
var parser = cron.MustNewParser(fieldOptions | cron.Descriptor | cron.DowOrDom).WithMaxSearchYears(searchYears)

func parseName(spec string) (*cron.SpecSchedule, error) {
	schedule, err := parser.Parse(spec)
	fields, ok := schedule.(*cron.SpecSchedule)
	if err != nil || !ok {
		return nil, errors.New("must be @yearly, @monthly, @weekly, @daily, @hourly or @every with a duration")
	}
	fields.Location, fields.DowOrDom = time.UTC, true
	return fields, nil
}

var (
	fieldNames = []string{"second", "minute", "hour", "day of month", "month", "day of week"}
	// An entry of a field's list. go-cron would also accept entries without a meaning.
	fieldEntries = regexp.MustCompile(`^([*?]|[0-9A-Za-z]+(-[0-9A-Za-z]+)?)(/[0-9]+)?$`)
)

func parseFields(given []string) (*cron.SpecSchedule, error) {
	if len(given) == len(fieldNames)-1 {
		given = append([]string{"0"}, given...)
	}
	if len(given) != len(fieldNames) {
		return nil, fmt.Errorf("must have five fields (%s), or six with seconds in front, not %d",
			strings.Join(fieldNames[1:], ", "), len(given))
	}
	for i, field := range given {
		if err := checkField(i, field); err != nil {
			return nil, fmt.Errorf("%s: %w", fieldNames[i], err)
		}
	}
	schedule, err := parser.Parse(strings.Join(given, " "))
	fields, ok := schedule.(*cron.SpecSchedule)
	if err != nil || !ok {
		return nil, fmt.Errorf("cannot be read: %w", err)
	}
	fields.Location = time.UTC
	return fields, nil
}

// checkField parses one field among others that are valid, so that the error is about that field.
func checkField(at int, field string) error {
	for entry := range strings.SplitSeq(field, ",") {
		if !fieldEntries.MatchString(entry) {
			return fmt.Errorf("%q is no value, range or step", entry)
		}
	}
	all := []string{"*", "*", "*", "*", "*", "*"}
	all[at] = field
	_, err := parser.Parse(strings.Join(all, " "))
	return err
}
