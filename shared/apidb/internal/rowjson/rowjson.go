// Package rowjson holds the types of JSON columns of jobs, and the options to read them.
package rowjson

import (
	"github.com/go-json-experiment/json/jsontext"

	"github.com/jobweaver/jobweaver/shared/jobevent"
)

// Progress is how far an attempt has come.
type Progress struct {
	Attempt int `json:"attempt"`
	jobevent.Progress
	Callback bool `json:"callback,omitempty"` // reported by an outside system: newer than the worker's report
}

// AnyNames accepts objects with a repeated name: one such output must not make a whole list unreadable.
var AnyNames = jsontext.AllowDuplicateNames(true)
