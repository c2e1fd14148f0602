package operationstore

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/jobweaver/jobweaver/shared/apibody"
	"github.com/jobweaver/jobweaver/shared/apidb/joblist"
)

// operationFilter is a filter with the search that was chosen when its operation was accepted. A search by names must
// stay one: a retry clears error codes, and a text that no job has as a name would then be looked for in messages.
type operationFilter struct {
	apibody.Filter
	By joblist.SearchBy `json:"by,omitempty"`
}

// readFilter reads the filter of an operation; nil: it has a list.
func readFilter(stored json.RawMessage) (*operationFilter, error) {
	if len(stored) == 0 {
		return nil, nil
	}
	var f operationFilter
	if err := json.Unmarshal(stored, &f); err != nil {
		return nil, fmt.Errorf("read filter: %w", err)
	}
	return &f, nil
}

// decideOperation chooses how an operation searches, as a list of the same owner would.
func (s *Store) decideOperation(ctx context.Context, asked *NewOperation) (joblist.SearchBy, error) {
	if asked.Request.Filter == nil {
		return "", nil
	}
	return s.jobs.ChooseSearch(ctx, asked.Whose, *asked.Request.Filter)
}
