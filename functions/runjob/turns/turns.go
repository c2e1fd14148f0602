// Package turns orders what waits for a slot: fairness keys take turns, and of one key the best goes first.
package turns

import (
	"cmp"
	"container/heap"
	"container/list"
	"iter"
	"slices"

	"github.com/jobweaver/jobweaver/shared/jobevent"
)

// KeyOf returns the fairness key of an attempt.
func KeyOf(run *jobevent.Run) string { return cmp.Or(run.FairnessKey, run.OwnerID) }

// Queue has waiting items of any number of keys.
type Queue[T comparable] struct {
	less  func(a, b T) bool
	byKey map[string]*list.Element
	turns list.List // of *line[T]: the first one has the turn
	n     int
}

// New returns an empty queue. less orders the items of one key.
func New[T comparable](less func(a, b T) bool) *Queue[T] {
	return &Queue[T]{less: less, byKey: map[string]*list.Element{}}
}

// Len returns the number of items.
func (q *Queue[T]) Len() int { return q.n }

// Push adds an item. A new key has its turn after the others.
func (q *Queue[T]) Push(key string, item T) {
	at := q.byKey[key]
	if at == nil {
		at = q.turns.PushBack(&line[T]{key: key, less: q.less})
		q.byKey[key] = at
	}
	heap.Push(at.Value.(*line[T]), item)
	q.n++
}

// First returns the item whose turn it is. There must be one.
func (q *Queue[T]) First() T { return q.turns.Front().Value.(*line[T]).items[0] }

// Next removes and returns the item whose turn it is, and passes the turn on.
func (q *Queue[T]) Next() T {
	at := q.turns.Front()
	q.turns.MoveToBack(at)
	return q.removeAt(at, 0)
}

// Remove removes an item, and reports whether the queue had it.
func (q *Queue[T]) Remove(key string, item T) bool {
	at := q.byKey[key]
	if at == nil {
		return false
	}
	i := slices.Index(at.Value.(*line[T]).items, item)
	if i < 0 {
		return false
	}
	q.removeAt(at, i)
	return true
}

func (q *Queue[T]) removeAt(at *list.Element, i int) T {
	l := at.Value.(*line[T])
	item := heap.Remove(l, i).(T)
	if q.n--; len(l.items) == 0 {
		q.turns.Remove(at)
		delete(q.byKey, l.key)
	}
	return item
}

// All returns the items in no defined order.
func (q *Queue[T]) All() iter.Seq[T] {
	return func(yield func(T) bool) {
		for _, at := range q.byKey {
			for _, item := range at.Value.(*line[T]).items {
				if !yield(item) {
					return
				}
			}
		}
	}
}

// line has the items of one key: a container/heap.
type line[T any] struct {
	key   string
	less  func(a, b T) bool
	items []T
}

func (l *line[T]) Len() int           { return len(l.items) }
func (l *line[T]) Less(i, j int) bool { return l.less(l.items[i], l.items[j]) }
func (l *line[T]) Swap(i, j int)      { l.items[i], l.items[j] = l.items[j], l.items[i] }

// Push implements heap.Interface.
func (l *line[T]) Push(x any) { l.items = append(l.items, x.(T)) }

// Pop implements heap.Interface.
func (l *line[T]) Pop() any {
	last := len(l.items) - 1
	item := l.items[last]
	clear(l.items[last:])
	l.items = l.items[:last]
	return item
}
