// Package shelves maps states to shelves, the parts of the indexes of jobs that hold the jobs of one state each.
package shelves

import (
	"slices"

	"github.com/jobweaver/jobweaver/shared/jobstate"
)

// ownedShelf is the shelf of an owner's completed jobs in the index jobs_owned.
const ownedShelf = 10

// OwnedOf is Of for the index jobs_owned, in which each job has a shelf. Without a status it returns all shelves.
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

// Of returns the shelves of some states in the index jobs_shelved, as the SQL function shelf_of numbers them. Jobs
// without a status of the scheduler have shelves of their own. It returns none if one of the states has no shelf.
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

// shelfOf lacks COMPLETED, the state in which most jobs end.
var shelfOf = map[jobstate.Status][]int32{
	jobstate.Pending: {0, 2}, jobstate.Scheduled: {1, 3}, jobstate.Retrying: {4}, jobstate.Queued: {5},
	jobstate.Running: {6}, jobstate.Waiting: {7}, jobstate.Failed: {8}, jobstate.Cancelled: {9},
}

// Once removes repeated states: a shelf that is read twice would return its jobs twice.
func Once(statuses []jobstate.Status) []jobstate.Status {
	return slices.Compact(slices.Sorted(slices.Values(statuses)))
}

// States returns the states as text, or all states if none are given: in the index of batches the jobs of each state
// stand together.
func States(statuses []jobstate.Status) []string {
	if len(statuses) == 0 {
		statuses = jobstate.All()
	}
	return Texts(Once(statuses))
}

// Texts returns the states as text.
func Texts(statuses []jobstate.Status) []string {
	out := make([]string, len(statuses))
	for i, status := range statuses {
		out[i] = string(status)
	}
	return out
}
