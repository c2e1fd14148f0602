package client

import "strings"

// Block is one reason why a job waits.
type Block struct {
	Kind string `json:"kind"` // dependency, order, singleton, pause or limit
	ID   string `json:"id"`
}

// WaitsFor describes what a job waits for, other than its time and a worker; empty: nothing.
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
