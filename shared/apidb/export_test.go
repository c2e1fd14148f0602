package apidb

import "time"

// ShiftClock has the store believe that the database's clock differs from what it is.
func (s *Store) ShiftClock(step time.Duration) { s.clock.zero = s.clock.zero.Add(step) }
