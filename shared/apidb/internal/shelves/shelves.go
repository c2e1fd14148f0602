// Package shelves knows where the indexes of jobs have the jobs of each state.
package shelves

import (
	"slices"

	"github.com/jobweaver/jobweaver/shared/jobstate"
)

// ownedShelf is where an owner's completed jobs stand in the index jobs_owned.
const ownedShelf = 10

// OwnedOf is Of in the index jobs_owned, where each job stands on a shelf; all for no status.
func OwnedOf(statuses ...jobstate.Status) (shelves []int32) {
	if len(statuses) == 0 {
		return []int32{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, ownedShelf}
	}
	for _, status := range Once(statuses) {
		if status == jobstate.Completed {
			shelves = append(shelves, ownedShelf)
		} else {
			shelves = append(shelves, Of(status)...)
		}
	}
	return shelves
}

// Of is where the index jobs_shelved has the jobs of some states, as shelf_of says: those that the
// scheduler has not been heard of stand by themselves. None: one of the states has no shelf.
func Of(statuses ...jobstate.Status) (shelves []int32) {
	for _, status := range Once(statuses) {
		of := shelfOf[status]
		if len(of) == 0 {
			return nil
		}
		shelves = append(shelves, of...)
	}
	return shelves
}

// shelfOf lacks COMPLETED, which most jobs are in the end.
var shelfOf = map[jobstate.Status][]int32{
	jobstate.Pending: {0, 2}, jobstate.Scheduled: {1, 3}, jobstate.Retrying: {4}, jobstate.Queued: {5},
	jobstate.Running: {6}, jobstate.Waiting: {7}, jobstate.Failed: {8}, jobstate.Cancelled: {9},
}

// Once keeps each state once: a shelf that is read twice has its jobs twice.
func Once(statuses []jobstate.Status) []jobstate.Status {
	return slices.Compact(slices.Sorted(slices.Values(statuses)))
}

// Texts is the states as text.
func Texts(statuses []jobstate.Status) []string {
	out := make([]string, len(statuses))
	for i, status := range statuses {
		out[i] = string(status)
	}
	return out
}
