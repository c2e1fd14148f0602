package joblist

import (
	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/uuid"
)

// SearchBy names the indexes that a search uses.
type SearchBy string

// ByText and ByName are the two ways to look for a text that is no id.
const (
	ByText SearchBy = ""     // tags and messages of failures, too: it looks at the newest jobs, a bounded number a page
	ByName SearchBy = "name" // idempotency keys and error codes
)

// AsID parses the text of a search as an id, if it has the form of a UUID: it is looked for by the indexes of ids.
func AsID(text string) (id uuid.UUID, ok bool) {
	id, err := uuid.Parse(text)
	return id, err == nil && len(text) == len(uuid.Nil.String())
}

func (l *List) asID() *uuid.UUID {
	if id, ok := AsID(l.Search); ok {
		return &id
	}
	return nil
}

func (l *List) searchID() any { return given(l.asID()) }

func (l *List) searchName() any { return given(l.Search != "" && l.asID() == nil && l.By == ByName) }

// searchText returns the text as it is encoded in a job-status event.
func (l *List) searchText() any {
	if l.Search == "" || l.asID() != nil || l.By == ByName {
		return nil
	}
	quoted, _ := jsontext.AppendQuote(nil, l.Search)
	return string(quoted[1 : len(quoted)-1])
}

// ReadsRows reports whether the list may read the row of each job, for the message of its failure or its payload.
func (l *List) ReadsRows() bool { return l.searchText() != nil || l.Payload != "" }
