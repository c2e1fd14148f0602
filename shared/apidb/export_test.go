package apidb

import "time"

// ShiftClock makes the store's estimate of the database's clock wrong.
func (s *Store) ShiftClock(step time.Duration) { s.clock.zero = s.clock.zero.Add(step) }
