package operationstore

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"

	"github.com/jobweaver/jobweaver/shared/apibody"
	"github.com/jobweaver/jobweaver/shared/apidb/jobstore"
)

// operationFilter is a filter with the search that was chosen when its operation was accepted. A search by names must
// stay one: a retry clears error codes, and a text that no job has as a name would then be looked for in messages.
type operationFilter struct {
	apibody.Filter
	By jobstore.SearchBy `json:"by,omitempty"`
}

// storeFilter writes a filter so that no older version of bulk reads it as a wider one, and gives the command to
// other jobs. A version that does not know narrow_filter finds a text in filter, and a version that does not know
// some of its fields finds a list in narrow_filter, or lists in that list. Each fails on it and leaves the operation
// to this version.
func storeFilter(f *apibody.Filter, by jobstore.SearchBy) (filter, narrow json.RawMessage, err error) {
	switch {
	case f.FanOutID != nil || f.EndedSince != nil || f.EndedUntil != nil:
		narrow, err = json.Marshal([][][]operationFilter{{{{*f, by}}}})
	case f.Narrowest():
		narrow, err = json.Marshal([][]operationFilter{{{*f, by}}})
	case f.Narrower():
		narrow, err = json.Marshal([]operationFilter{{*f, by}})
	case f.Narrow():
		narrow, err = json.Marshal(f)
	default:
		filter, err = json.Marshal(f)
	}
	if err != nil {
		return nil, nil, fmt.Errorf("write filter: %w", err)
	}
	if narrow != nil {
		filter = json.RawMessage(`"narrow_filter"`)
	}
	return filter, narrow, nil
}

// readFilter reads what storeFilter has written; nil: no filter.
func readFilter(stored json.RawMessage) (*operationFilter, error) {
	if len(stored) == 0 {
		return nil, nil
	}
	list := make([]operationFilter, 1)
	var err error
	switch {
	case bytes.HasPrefix(stored, []byte("[[[")):
		lists := [1][1][]operationFilter{}
		err = json.Unmarshal(stored, &lists)
		list = lists[0][0]
	case bytes.HasPrefix(stored, []byte("[[")):
		lists := [1][]operationFilter{}
		err = json.Unmarshal(stored, &lists)
		list = lists[0]
	case stored[0] == '[':
		err = json.Unmarshal(stored, &list)
	default:
		err = json.Unmarshal(stored, &list[0].Filter)
	}
	if err == nil && len(list) != 1 {
		err = fmt.Errorf("there are %d of them", len(list))
	}
	if err != nil {
		return nil, fmt.Errorf("read filter: %w", err)
	}
	return &list[0], nil
}

// decideOperation chooses how an operation searches, as a list of the same owner would.
func (s *Store) decideOperation(ctx context.Context, asked *NewOperation) (jobstore.SearchBy, error) {
	if asked.Request.Filter == nil {
		return "", nil
	}
	f := asked.Request.Filter
	return s.jobs.ChooseSearch(ctx, asked.Whose, f.OwnerID, f.Search)
}
