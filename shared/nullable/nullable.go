// Package nullable converts between columns that may be NULL and Go's zero values.
package nullable

// Text returns nil for an empty text.
func Text(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

// Value returns the value of a column, or the zero value for NULL.
func Value[T any](p *T) (v T) {
	if p != nil {
		v = *p
	}
	return v
}
