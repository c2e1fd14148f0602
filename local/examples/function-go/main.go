// Command function-go is a function for jobs of type FUNCTION: it counts the words of a text. To make your own
// function, change count. serve.go and later.go can stay as they are.
package main

import (
	"net/http"
	"strings"

	cloudevents "github.com/cloudevents/sdk-go/v2"
)

// count takes an event whose data is {"text": "…"}, and returns the output of its job.
func count(event cloudevents.Event) (any, error) {
	var data struct{ Text *string }
	if err := event.DataAs(&data); err != nil || data.Text == nil {
		return nil, refusal{Code: "WORDS.NO_TEXT", Message: `the data has to be {"text": "…"}`}
	}
	return map[string]int{"words": len(strings.Fields(*data.Text))}, nil
}

func main() {
	http.Handle("POST /{$}", now(count))     // answers with the output
	http.Handle("POST /later", later(count)) // answers 202, and calls back with the output
	serve()
}
