package apibody

import "github.com/jobweaver/jobweaver/shared/jobevent"

// DecodeQueue reads which function serves a new queue; an empty body has the default. It returns all that is wrong as
// an *apierror.Error.
func DecodeQueue(body []byte) (workers string, err error) {
	workers = jobevent.WorkersRunjob
	if len(body) == 0 {
		return workers, nil
	}
	r := newReader(body)
	r.Object(func() {
		switch string(r.Name) {
		case "workers":
			workers = r.OneOf([]string{jobevent.WorkersRunjob, jobevent.WorkersPull})
		default:
			r.Unknown()
		}
	})
	return workers, r.Close().Err("queue")
}
