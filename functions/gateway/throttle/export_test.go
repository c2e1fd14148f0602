package throttle

// Known returns how many callers the table remembers.
func (t *Table) Known() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.now) + len(t.earlier)
}
