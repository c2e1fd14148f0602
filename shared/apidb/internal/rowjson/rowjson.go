// Package rowjson is what columns of jobs hold as JSON, and how it is read.
package rowjson

import (
	"github.com/go-json-experiment/json/jsontext"

	"github.com/jobweaver/jobweaver/shared/jobevent"
)

// Progress is how far an attempt has come.
type Progress struct {
	Attempt int `json:"attempt"`
	jobevent.Progress
	Callback bool `json:"callback,omitempty"` // an outside system has reported it: newer than what its worker says
}

// AnyNames reads objects in which a name stands twice: one output like that must not hide all jobs of a list.
var AnyNames = jsontext.AllowDuplicateNames(true)
