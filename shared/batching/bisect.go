// Package batching handles items in batches.
package batching

// Bisect finds the items to which an error of do is due. err is that of do for the whole batch; after nil nothing is
// left to do. If err may be due to one of the n items (isDue), Bisect calls do with both halves, in order, and divides
// each half that fails, down to a single item, which it passes to alone. It stops at the first other error, and at one
// of alone.
func Bisect[T any](
	batch []T, err error, do func([]T) error, isDue func(err error, n int) bool, alone func(T, error) error,
) error {
	n := len(batch)
	switch {
	case err == nil || n == 0 || !isDue(err, n):
		return err
	case n == 1:
		return alone(batch[0], err)
	}
	for _, half := range [][]T{batch[:n/2], batch[n/2:]} {
		if err := Bisect(half, do(half), do, isDue, alone); err != nil {
			return err
		}
	}
	return nil
}
