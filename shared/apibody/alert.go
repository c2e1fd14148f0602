package apibody

import (
	"net/mail"

	"github.com/jobweaver/jobweaver/shared/jobspec"
)

// Limits and defaults of an alert.
const (
	MaxAlertBytes = 64 << 10

	maxAlertFailures   = 1_000_000
	alertWindow        = 5  // minutes, if the request does not name it
	alertQuiet         = 60 // likewise
	maxAlertAddress    = 1_000
	maxAlertURL        = 2_000
	oneDestination     = "must have exactly one of webhook, slack and email"
	wrongAlertAddress  = "must be a mail address, as in ada@example.org"
	alertRequest       = "alert"
	alertDefaultFailed = 1
)

// Alert is a rule that sends a notice when enough jobs have failed, with its defaults filled in.
type Alert struct {
	Name          string // empty: the path has it
	OwnerID       string // as named in the request
	JobType       string // empty: any
	Queue         string
	ErrorCode     string
	Failures      int // fires if as many jobs have failed in the window,
	Percent       int // and they are at least this part of the jobs that have ended; 0: however many ended
	WindowMinutes int
	QuietMinutes  int // the least time between two notices that it fires
	To            jobspec.Destination
	Paused        bool
}

// DecodeAlert reads an alert. The error is an *apierror.Error.
func DecodeAlert(body []byte, checkURL func(string) error) (Alert, error) {
	r := newReader(body)
	a := Alert{Failures: alertDefaultFailed, WindowMinutes: alertWindow, QuietMinutes: alertQuiet}
	hasTo := false
	complete := r.Object(func() {
		hasTo = hasTo || string(r.Name) == "to"
		if !r.alertFilter(&a) && !r.alertMember(&a, checkURL) {
			r.Unknown()
		}
	})
	if complete && !hasTo {
		r.BadAt("to", "is required")
	}
	return a, r.Close().Err(alertRequest)
}

// alertFilter reads a member that chooses jobs; null: any.
func (r reader) alertFilter(a *Alert) bool {
	name := func(into *string, check func(string) string) {
		if !r.Null() {
			*into = r.Checked(check)
		}
	}
	switch string(r.Name) {
	case "jobType":
		name(&a.JobType, wrongAlertedType)
	case "queue":
		name(&a.Queue, jobspec.WrongQueue)
	case "errorCode":
		name(&a.ErrorCode, jobspec.WrongErrorCode)
	default:
		return false
	}
	return true
}

// wrongAlertedType refuses the type of the notices themselves, which no alert counts.
func wrongAlertedType(jobType string) string {
	if jobType == jobspec.Alert {
		return "must not be that of the notices"
	}
	return jobspec.WrongJobType(jobType)
}

func (r reader) alertMember(a *Alert, checkURL func(string) error) bool {
	switch string(r.Name) {
	case "name":
		a.Name = r.Checked(checkScheduleName)
	case "ownerId":
		if !r.Null() {
			a.OwnerID = r.Label(jobspec.MaxKey)
		}
	case "failures":
		a.Failures = int(r.Integer(1, maxAlertFailures))
	case "percent":
		if !r.Null() {
			a.Percent = int(r.Integer(1, 100))
		}
	case "windowMinutes":
		a.WindowMinutes = int(r.Integer(1, jobspec.MaxAlertWindow))
	case "quietMinutes":
		a.QuietMinutes = int(r.Integer(1, jobspec.MaxAlertQuiet))
	case "to":
		a.To = r.destination(checkURL)
	case "paused":
		a.Paused = r.Boolean()
	default:
		return false
	}
	return true
}

func (r reader) destination(checkURL func(string) error) (to jobspec.Destination) {
	given, path := 0, r.Path()
	address := func() string {
		text, ok := r.Text(maxAlertURL)
		if err := checkURL(text); ok && err != nil {
			r.Bad("%s", err)
		}
		return text
	}
	complete := r.Object(func() {
		given++
		switch string(r.Name) {
		case "webhook":
			to.Webhook = address()
		case "slack":
			to.Slack = address()
		case "email":
			to.Email = r.Names(jobspec.MaxAlertAddresses, func() string {
				text, ok := r.Text(maxAlertAddress)
				if _, err := mail.ParseAddress(text); ok && err != nil {
					r.Bad(wrongAlertAddress)
				}
				return text
			})
		default:
			r.Unknown()
		}
	})
	if complete && (given != 1 || to.Email != nil && len(to.Email) == 0) {
		r.BadAt(path, oneDestination)
	}
	return to
}
