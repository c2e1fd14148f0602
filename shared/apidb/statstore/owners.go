package statstore

import (
	"context"
	"strings"
	"time"

	"github.com/jobweaver/jobweaver/shared/apidb"
)

// ownersAge is how old the names of owners may be.
const ownersAge = 5 * time.Second

// Owners returns the first owners, by name, whose names contain a text, whatever its case; more reports that others
// follow. It knows MaxFigure owners: those with jobs at the last census, a key or a control.
func (s *Store) Owners(ctx context.Context, text string, limit int) (owners []string, more bool, err error) {
	count := func(all []string) int64 { return int64(len(all)) }
	all, err := s.owners.GetRarely(ctx, ownersAge, count, func(ctx context.Context) ([]string, error) {
		all, err := s.q.OwnersKnown(ctx, apidb.MaxFigure)
		return all, apidb.Classify("list owners", err)
	})
	text = strings.ToLower(text)
	owners = []string{}
	for _, owner := range all {
		if !strings.Contains(strings.ToLower(owner), text) {
			continue
		}
		if len(owners) == limit {
			return owners, true, err
		}
		owners = append(owners, owner)
	}
	return owners, false, err
}
