package policy

import (
	"fmt"
	"strings"
	"unicode"

	"golang.org/x/text/width"
)

// Normalize is the form in which texts and keywords are compared: half-width, lower case, without spaces, punctuation,
// symbols, and characters that are not seen. So "赌 . 博" and "Ｄ－ＡＢＣ" are found as 赌博 and dabc.
func Normalize(s string) string {
	var b strings.Builder
	b.Grow(len(s))
	for _, r := range s {
		if r > unicode.MaxASCII {
			if f := width.LookupRune(r).Folded(); f != 0 {
				r = f
			}
		}
		if keeps(r) {
			b.WriteRune(unicode.ToLower(r))
		}
	}
	return b.String()
}

func keeps(r rune) bool {
	if r <= unicode.MaxASCII {
		return r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z'
	}
	return unicode.IsLetter(r) || unicode.IsNumber(r)
}

// CheckKeyword says why a word cannot be one: nothing of it is left by Normalize, or a single Latin letter or digit, which
// nearly every text has.
func CheckKeyword(s string) error {
	_, err := normalWord(s)
	return err
}

func normalWord(s string) (string, error) {
	n := Normalize(s)
	if n == "" || len(n) == 1 {
		return "", fmt.Errorf("word %q is compared as %q (no case, spaces, punctuation or symbols): want at least two letters or digits, or one other character", s, n)
	}
	return n, nil
}

type word struct {
	id     int32
	text   string
	action Action
}

// matcher finds the words of one list in a text in one pass (Aho and Corasick): the time does not grow with the list.
type matcher struct {
	next map[edge]int32 // the trie; node 0 is its root
	fail []int32        // the node of the longest proper suffix that is in the trie
	hit  []word         // the most severe word that ends in the node, its suffixes included; action 0 = none
}

type edge struct {
	node int32
	char rune
}

func newMatcher(words []word) *matcher {
	m := &matcher{next: make(map[edge]int32), fail: []int32{0}, hit: []word{{}}}
	type step struct {
		parent, node int32
		char         rune
	}
	var levels [][]step // new nodes by depth
	for _, w := range words {
		node, depth := int32(0), 0
		for _, c := range w.text {
			e := edge{node, c}
			child, ok := m.next[e]
			if !ok {
				child = int32(len(m.fail))
				m.fail, m.hit, m.next[e] = append(m.fail, 0), append(m.hit, word{}), child
				if depth == len(levels) {
					levels = append(levels, nil)
				}
				levels[depth] = append(levels[depth], step{node, child, c})
			}
			node, depth = child, depth+1
		}
		m.hit[node] = graver(m.hit[node], w)
	}
	for depth, steps := range levels {
		for _, s := range steps {
			if depth > 0 {
				m.fail[s.node] = m.step(m.fail[s.parent], s.char)
			}
			m.hit[s.node] = graver(m.hit[s.node], m.hit[m.fail[s.node]])
		}
	}
	return m
}

// graver is the word with the more severe action; of two alike the one with the lower id.
func graver(a, b word) word {
	if a.action == 0 || b.action != 0 && (b.action < a.action || b.action == a.action && b.id < a.id) {
		return b
	}
	return a
}

func (m *matcher) step(node int32, c rune) int32 {
	for {
		if next, ok := m.next[edge{node, c}]; ok {
			return next
		}
		if node == 0 {
			return 0
		}
		node = m.fail[node]
	}
}

// find is the most severe word in a normalised text; action 0 = none.
func (m *matcher) find(text string) word {
	var found word
	if m == nil {
		return found
	}
	node := int32(0)
	for _, c := range text {
		node = m.step(node, c)
		if h := m.hit[node]; h.action != 0 {
			if found = graver(found, h); found.action == Reject {
				break // nothing is more severe
			}
		}
	}
	return found
}

// keyword is the most severe keyword of an enterprise in a text.
func (s *Set) keyword(enterprise int32, text string) word {
	if s == nil || len(s.keywords) == 0 {
		return word{}
	}
	n := Normalize(text)
	return graver(s.keywords[enterprise].find(n), s.keywords[0].find(n))
}
