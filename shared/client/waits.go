package client

import "strings"

// Block is a thing that a waiting job waits for.
type Block struct {
	Kind string `json:"kind"` // dependency, order, singleton, pause or limit
	ID   string `json:"id"`
}

// WaitsFor is what a job waits for, beside its time and a worker, in words; empty: nothing.
func (j *Job) WaitsFor() string {
	var all []string
	for _, block := range j.BlockedBy {
		kind, name, _ := strings.Cut(block.ID, ":")
		switch control := kind + " " + name; block.Kind {
		case "dependency":
			all = append(all, "job "+block.ID+" to end")
		case "order":
			all = append(all, "earlier jobs of ordering key "+block.ID)
		case "singleton":
			all = append(all, "earlier jobs of singleton key "+block.ID)
		case "pause":
			all = append(all, control+", which is paused")
		case "limit":
			all = append(all, control+", which is limited")
		default:
			all = append(all, block.Kind+" "+block.ID)
		}
	}
	return strings.Join(all, "; ")
}
