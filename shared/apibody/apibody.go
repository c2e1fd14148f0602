// Package apibody decodes the bodies of the API's requests, apart from a job's request, which is jobspec's: callbacks,
// controls, operations, schedules, API keys, and the requests of pull workers.
package apibody

import "github.com/jobweaver/jobweaver/shared/strictjson"

// reader reads the members that several bodies share.
type reader struct {
	*strictjson.Reader
	unsound strictjson.Problems // of the whole body
}

// newReader reads nothing of a body that is unsound as a whole.
func newReader(body []byte) reader {
	unsound := strictjson.Scan(body, "")
	if unsound != nil {
		body = nil
	}
	return reader{strictjson.NewReader(body, ""), unsound}
}

// Close ends the body, and returns what is wrong with it.
func (r reader) Close() strictjson.Problems {
	wrong := r.Reader.Close()
	if r.unsound != nil {
		return r.unsound
	}
	return wrong
}
