// Package apibody decodes the bodies of the API's requests, apart from a job's request, which is jobspec's: callbacks,
// controls, operations, schedules, API keys, and the requests of pull workers.
package apibody

import "github.com/jobweaver/jobweaver/shared/strictjson"

// reader reads the members that several bodies share.
type reader struct{ *strictjson.Reader }

func newReader(body []byte) reader { return reader{strictjson.NewReader(body, "")} }
