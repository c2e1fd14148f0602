package turns_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/jobweaver/jobweaver/functions/runjob/turns"
)

func TestKeysTakeTurnsAndOfOneKeyTheBestGoesFirst(t *testing.T) {
	t.Parallel()
	q := turns.New(func(a, b string) bool { return a < b })
	for _, item := range strings.Fields("a3 a1 a2 a4 b9 b8 c5") {
		q.Push(item[:1], item)
	}
	if q.First() != "a1" || q.Next() != "a1" || q.Next() != "b8" {
		t.Fatal("the first turns are not of a and b")
	}
	q.Push("d", "d7")
	q.Push("a", "a0")
	if !q.Remove("c", "c5") || q.Remove("c", "c5") || q.Remove("a", "a9") {
		t.Error("Remove does not report what the queue had")
	}
	if all := slices.Sorted(q.All()); len(all) != 6 || q.Len() != 6 || all[0] != "a0" {
		t.Errorf("it has %v", all)
	}
	var order []string
	for q.Len() > 0 {
		order = append(order, q.Next())
	}
	if got := strings.Join(order, " "); got != "a0 b9 d7 a2 a3 a4" {
		t.Errorf("then it went on with %s", got)
	}
}
