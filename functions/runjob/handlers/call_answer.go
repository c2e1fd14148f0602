package handlers

import (
	"bytes"
	"encoding/json"
	"fmt"
	"mime"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/jobweaver/jobweaver/shared/apierror"
	"github.com/jobweaver/jobweaver/shared/httpevent"
	"github.com/jobweaver/jobweaver/shared/jobevent"
	"github.com/jobweaver/jobweaver/shared/outbound"
)

const (
	maxCallAnswer = 1 << 20 // bytes of an answer's body; an event in JSON may be longer than its data
	maxExcerpt    = 1 << 10 // bytes of an answer, quoted in a message
)

// callRefused returns the failure for an answer with another status than 2xx. A JSON object in its body may describe
// the failure.
func callRefused(r *http.Request, answer *outbound.Answer) *Failure {
	status := strings.TrimSpace(strconv.Itoa(answer.Status) + " " + http.StatusText(answer.Status))
	f := &Failure{
		Code:      string(apierror.CallFailed),
		Message:   called(r) + "answered " + status,
		Retryable: outbound.Retryable(answer.Status),
		Private:   true,
	}
	if !f.describedBy(answer) {
		if text := excerpt(answer.Body); text != "" {
			f.Message += ": " + text
		}
	}
	if f.Retryable && (answer.Status == http.StatusTooManyRequests || answer.Status == http.StatusServiceUnavailable) {
		f.RetryAfter = answer.RetryAfter
	}
	return f
}

// describedBy copies the usable fields of an answer's body, {"errorCode", "message", "retryable"}, to the failure. It
// reports whether the answer describes the failure.
func (f *Failure) describedBy(answer *outbound.Answer) bool {
	var body struct{ ErrorCode, Message, Retryable json.RawMessage }
	if answer.Truncated || json.Unmarshal(answer.Body, &body) != nil {
		return false
	}
	var code, message string
	if json.Unmarshal(body.ErrorCode, &code) == nil && ownCode.MatchString(code) {
		f.Code = code
	}
	var retryable *bool
	if json.Unmarshal(body.Retryable, &retryable) == nil && retryable != nil {
		f.Retryable = *retryable
	}
	if json.Unmarshal(body.Message, &message) == nil {
		message = excerpt([]byte(message))
	}
	if message == "" {
		return false
	}
	f.Message = message
	return true
}

// ownCode reports whether a text may be an error code, as in a callback.
var ownCode = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9._-]{0,63}$`)

// excerpt returns the beginning of an answer as one printable line; empty if it is not text.
func excerpt(text []byte) string {
	if len(text) > maxExcerpt {
		text = text[:maxExcerpt]
		for i := 0; i < utf8.UTFMax && len(text) > 0 && !utf8.Valid(text[max(0, len(text)-utf8.UTFMax):]); i++ {
			text = text[:len(text)-1]
		}
	}
	if !utf8.Valid(text) {
		return ""
	}
	plain := strings.Map(func(r rune) rune {
		if unicode.IsSpace(r) {
			return ' '
		}
		if !unicode.IsPrint(r) {
			return -1
		}
		return r
	}, string(text))
	return strings.Join(strings.Fields(plain), " ")
}

// outputOf returns a good answer as a job's output: JSON as it is, the data of an event, text as a JSON string.
func outputOf(answer *outbound.Answer) (json.RawMessage, *Failure) {
	if answer.Truncated {
		return nil, tooLarge(fmt.Sprintf("the answer has more than %d bytes", maxCallAnswer))
	}
	contentType, data := answer.Header.Get("Content-Type"), answer.Body
	switch media := mediaOf(contentType); {
	case media == "application/cloudevents+json":
		e, err := httpevent.Structured(data)
		if err != nil {
			return nil, badOutput("the answer is not a CloudEvent: " + err.Error())
		}
		contentType, data = e.DataContentType(), e.DataEncoded
	case strings.HasPrefix(media, "application/cloudevents"):
		return nil, badOutput("the answer is not one CloudEvent in JSON but " + media)
	case answer.Header.Get("Ce-Specversion") != "":
		e, err := httpevent.Binary(answer.Header, data)
		if err != nil {
			return nil, badOutput("the answer is not a CloudEvent: " + err.Error())
		}
		data = e.DataEncoded
	}
	return outputFrom(contentType, data)
}

// outputFrom returns data as an output. Without a content type it counts as JSON if it is valid.
func outputFrom(contentType string, data []byte) (json.RawMessage, *Failure) {
	data = bytes.TrimSpace(data)
	isJSON := json.Valid(data) && utf8.Valid(data)
	switch media := mediaOf(contentType); {
	case len(data) == 0:
		return nil, nil
	case media == "" && isJSON:
	case media == "application/json" || media == "text/json" || strings.HasSuffix(media, "+json"):
		if !isJSON {
			return nil, badOutput("the answer's content type is " + media + ", but it is not JSON in UTF-8")
		}
	case !utf8.Valid(data):
		return nil, badOutput("the answer is neither JSON nor text in UTF-8, but " + media)
	default:
		var err error
		if data, err = jobevent.Encode(string(data)); err != nil {
			return nil, badOutput(err.Error())
		}
	}
	if len(data) > MaxOutput {
		return nil, tooLarge(fmt.Sprintf("the answer makes %d bytes of output", len(data)))
	}
	return data, nil
}

// mediaOf returns a content type in lower case without its parameters, as far as it can be parsed.
func mediaOf(contentType string) string {
	media, _, err := mime.ParseMediaType(contentType)
	if err != nil {
		media, _, _ = strings.Cut(contentType, ";")
		media = strings.ToLower(strings.TrimSpace(media))
	}
	return media
}

func badOutput(why string) *Failure {
	return &Failure{Code: string(apierror.InvalidOutput), Message: excerpt([]byte(why)), Private: true}
}

func tooLarge(why string) *Failure {
	return &Failure{Code: string(apierror.OutputTooLarge), Message: fmt.Sprintf("%s, %d are allowed", why, MaxOutput)}
}
