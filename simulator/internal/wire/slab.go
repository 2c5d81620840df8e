package wire

import "iter"

// Slab is an append-only list whose elements never move: pointers into it stay
// good, and growing it copies nothing. The zero value is empty. Not safe for
// concurrent use.
type Slab[T any] struct {
	chunks [][]T
	count  int
}

const slabChunk = 1024

// Add appends a zero element and returns it.
func (s *Slab[T]) Add() *T {
	last := len(s.chunks) - 1
	if last < 0 || len(s.chunks[last]) == slabChunk {
		s.chunks = append(s.chunks, make([]T, 0, slabChunk))
		last++
	}
	chunk := &s.chunks[last]
	*chunk = (*chunk)[:len(*chunk)+1]
	s.count++
	return &(*chunk)[len(*chunk)-1]
}

// Len returns the number of elements.
func (s *Slab[T]) Len() int { return s.count }

// All walks the elements in the order they were added.
func (s *Slab[T]) All() iter.Seq[*T] {
	return func(yield func(*T) bool) {
		for _, chunk := range s.chunks {
			for i := range chunk {
				if !yield(&chunk[i]) {
					return
				}
			}
		}
	}
}
