// Package pullwire has the messages between the gateway and the function pull about pull workers. Only the gateway
// calls pull; clients call the gateway.
package pullwire

import (
	"encoding/json"
	"io"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/jobweaver/jobweaver/shared/apibody"
	"github.com/jobweaver/jobweaver/shared/apierror"
	"github.com/jobweaver/jobweaver/shared/client"
	"github.com/jobweaver/jobweaver/shared/webhook"
)

// The paths of pull.
const (
	ClaimPath      = "/pull/claim"
	HeartbeatPath  = "/pull/heartbeat"
	CheckpointPath = "/pull/checkpoint"
	SettlePath     = "/pull/settle"
)

// SecretHeader is the header with the secret that authenticates a gateway. It is derived from CALLBACK_SECRETS, which
// both functions have.
const SecretHeader = "X-Pull-Secret"

// secretOf is the text from which the secret is derived. It is not a jobevent.AttemptToken, so no attempt has the same
// secret.
const secretOf = "pull"

// Secret returns the value for SecretHeader; empty: CALLBACK_SECRETS is not set.
func Secret(keys *webhook.CallbackKeys) string { return keys.Secret(secretOf) }

// IsSecret reports whether a header's value is the secret of one of the keys.
func IsSecret(keys *webhook.CallbackKeys, given string) bool {
	return keys.CheckSecret(secretOf, given)
}

// Unescaped writes < as it is: with \u003c an output or a checkpoint that contains HTML could become larger than the
// next reader accepts.
var Unescaped = jsontext.EscapeForHTML(false)

// Write writes a message as JSON, with < unescaped.
func Write(to io.Writer, message any) error {
	e := json.NewEncoder(to)
	e.SetEscapeHTML(false)
	return e.Encode(message)
}

// Caller is the owner for whom a pull worker works.
type Caller struct {
	Owner    string `json:"owner"`
	Everyone bool   `json:"everyone"` // all owners' attempts, whatever Owner is
}

// Claim is a request to one instance for attempts. The instance answers 200 with Attempts, 204 if there were none in
// time, and 503 if it stops.
type Claim struct {
	Caller
	apibody.WorkClaim
	Instance string `json:"instance"` // the gateway's name for this instance; its tokens begin with it
	// Peek asks only whether there is an attempt: the answer is 202 as soon as a claim would find one.
	Peek bool `json:"peek,omitempty"`
}

// Heartbeat is answered 200 with HeartbeatAnswer.
type Heartbeat struct {
	Caller
	apibody.WorkHeartbeat
}

// Settle is answered 200 with Settled.
type Settle struct {
	Caller
	apibody.WorkSettle
}

// Checkpoints is answered 200 with Settled.
type Checkpoints struct {
	Caller
	apibody.WorkCheckpoints
}

// Attempts is the public answer to a claim.
type Attempts struct {
	Attempts []Attempt `json:"attempts"`
}

// Attempt is an attempt for a pull worker to run. It writes two members in another way than the client reads them.
type Attempt struct {
	client.WorkAttempt // without tags, which the gateway has; null: it could not read them

	OwnerID *string         `json:"ownerId"`         // null: none
	Event   json.RawMessage `json:"event,omitempty"` // as it was submitted
}

// HeartbeatAnswer is the public answer to a heartbeat.
type HeartbeatAnswer = client.WorkHeartbeatAnswer

// Settled is the public answer to a settle or to checkpoints, in the order of the request.
type Settled struct {
	Results []Answer `json:"results"`
}

// Answer is the answer to one result: 200, or a status with its error.
type Answer struct {
	Token  string `json:"token"`
	Status int    `json:"status"`
	Error  *Error `json:"error,omitempty"`
}

// Error is why a result, or a checkpoint, does not count.
type Error struct {
	ErrorCode apierror.Code     `json:"errorCode"`
	Message   string            `json:"message"`
	Details   []apierror.Detail `json:"details"`
}

// Refused is an Answer with an error.
func Refused(token string, err *apierror.Error) Answer {
	details := err.Details
	if details == nil {
		details = []apierror.Detail{}
	}
	return Answer{token, err.Status(), &Error{err.Code, err.Message, details}}
}

// Over returns the Answer for a token whose attempt has ended or is unknown.
func Over(token, why string) Answer {
	return Refused(token, apierror.New(apierror.AttemptOver, "%s", why))
}

// Unavailable returns the Answer for a result that could not be checked: it may be sent again.
func Unavailable(token string) Answer {
	return Refused(token, apierror.New(apierror.Unavailable, "the attempt's worker cannot be reached; send it again"))
}
