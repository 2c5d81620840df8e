package wire

// Queue is a binary heap of things that are due at a time, first in first out
// among equals. The zero value is an empty queue. Not safe for concurrent use.
type Queue[T any] struct {
	items []timed[T]
	count uint64
}

type timed[T any] struct {
	due   int64
	order uint64
	value T
}

// Len returns the number of queued values.
func (q *Queue[T]) Len() int { return len(q.items) }

// Next returns the earliest due time; ok is false when the queue is empty.
func (q *Queue[T]) Next() (due int64, ok bool) {
	if len(q.items) == 0 {
		return 0, false
	}
	return q.items[0].due, true
}

// Push adds v, due at due.
func (q *Queue[T]) Push(due int64, v T) {
	q.count++
	q.items = append(q.items, timed[T]{due: due, order: q.count, value: v})
	i := len(q.items) - 1
	for i > 0 {
		parent := (i - 1) / 2
		if !q.less(i, parent) {
			break
		}
		q.items[i], q.items[parent] = q.items[parent], q.items[i]
		i = parent
	}
}

// Pop removes the earliest value when it is due at or before now.
func (q *Queue[T]) Pop(now int64) (v T, ok bool) {
	if len(q.items) == 0 || q.items[0].due > now {
		return v, false
	}
	v = q.items[0].value
	last := len(q.items) - 1
	q.items[0] = q.items[last]
	q.items[last] = timed[T]{} // lets go of what value points at
	q.items = q.items[:last]
	for i := 0; ; {
		least := i
		for child := 2*i + 1; child <= 2*i+2 && child < last; child++ {
			if q.less(child, least) {
				least = child
			}
		}
		if least == i {
			return v, true
		}
		q.items[i], q.items[least] = q.items[least], q.items[i]
		i = least
	}
}

func (q *Queue[T]) less(i, j int) bool {
	a, b := &q.items[i], &q.items[j]
	return a.due < b.due || a.due == b.due && a.order < b.order
}
