package policy

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"
)

const (
	variableDefault = 32   // characters, where a variable names no length
	variableMax     = 500  // characters of one variable
	variablesMax    = 1000 // characters of all variables of a template: the bound of what it costs to match one
)

// template is a text with variables. Matching takes time in proportion to the text, whatever the variables.
type template struct {
	literals []string // the fixed parts, in order; the first may be empty, and says what the text begins with
	pattern  *regexp.Regexp
}

// CheckTemplate says what is wrong with a template's text.
func CheckTemplate(text string) error {
	_, err := parseTemplate(text)
	return err
}

var variable = regexp.MustCompile(`^[\p{L}\p{N}_]{1,32}(?::([dw]?)(?:(?:(\d{1,3})-)?(\d{1,3}))?)?$`)

// parseTemplate reads a template: fixed text and variables in braces, such as {code:d4-6}.
func parseTemplate(text string) (*template, error) {
	if strings.Contains(text, opening) || strings.Contains(text, closing) {
		return nil, errors.New("a template is the text without its signature, and without 【 or 】")
	}
	t := &template{}
	var pattern strings.Builder
	pattern.WriteString(`(?s)\A`)
	total, fixed := 0, 0
	for rest := text; ; {
		literal, after, found := strings.Cut(rest, "{")
		if strings.Contains(literal, "}") {
			return nil, fmt.Errorf("} without { in %q", literal)
		}
		t.literals = append(t.literals, literal)
		fixed += utf8.RuneCountInString(literal)
		pattern.WriteString(regexp.QuoteMeta(literal))
		if !found {
			break
		}
		name, tail, closed := strings.Cut(after, "}")
		if !closed {
			return nil, fmt.Errorf("{ without } in %q", after)
		}
		class, low, high, err := parseVariable(name)
		if err != nil {
			return nil, err
		}
		total += high
		fmt.Fprintf(&pattern, "%s{%d,%d}", class, low, high)
		rest = tail
	}
	pattern.WriteString(`\z`)
	if total > variablesMax {
		return nil, fmt.Errorf("the variables may take %d characters in all, at most %d are allowed", total, variablesMax)
	}
	if fixed == 0 {
		return nil, errors.New("no fixed text: the template would match anything")
	}
	var err error
	t.pattern, err = regexp.Compile(pattern.String())
	return t, err
}

func parseVariable(name string) (class string, low, high int, err error) {
	m := variable.FindStringSubmatch(name)
	if m == nil {
		return "", 0, 0, fmt.Errorf("variable {%s}: want {name}, {name:max}, {name:min-max}, {name:d4-6} for digits, {name:w1-10} for letters and digits", name)
	}
	low, high = 1, variableDefault
	if m[3] != "" {
		high, _ = strconv.Atoi(m[3]) // one to three digits
	}
	if m[2] != "" {
		low, _ = strconv.Atoi(m[2])
	}
	if high < 1 || high > variableMax || low > high {
		return "", 0, 0, fmt.Errorf("variable {%s}: %d to %d characters, want min ≤ max, max 1 to %d", name, low, high, variableMax)
	}
	switch m[1] {
	case "d":
		class = `[0-9]`
	case "w":
		class = `[0-9A-Za-z]`
	default:
		class = `[^【】]`
	}
	return class, low, high, nil
}

func (t *template) match(text string) bool {
	// The fixed parts in their order, before the pattern: it tells most texts apart at once.
	if !strings.HasPrefix(text, t.literals[0]) {
		return false
	}
	rest := text[len(t.literals[0]):]
	for _, l := range t.literals[1:] {
		i := strings.Index(rest, l)
		if i < 0 {
			return false
		}
		rest = rest[i+len(l):]
	}
	return t.pattern.MatchString(text)
}

// templates of one enterprise, by the character their texts begin with.
type templates struct {
	byFirst map[rune][]owned
	any     []owned // those that begin with a variable
}

type owned struct {
	*template

	id, app int32
}

func newTemplates() *templates { return &templates{byFirst: make(map[rune][]owned)} }

func (t *templates) add(id, app int32, p *template) {
	o := owned{template: p, id: id, app: app}
	if p.literals[0] == "" {
		t.any = append(t.any, o)
		return
	}
	first, _ := utf8.DecodeRuneInString(p.literals[0])
	t.byFirst[first] = append(t.byFirst[first], o)
}

// template is the id of one that the text follows, 0 for none.
func (s *Set) template(enterprise, app int32, text string) int32 {
	t := s.templates[enterprise]
	if t == nil {
		return 0
	}
	first, _ := utf8.DecodeRuneInString(text)
	for _, list := range [][]owned{t.byFirst[first], t.any} {
		for _, o := range list {
			if (o.app == 0 || o.app == app) && o.match(text) {
				return o.id
			}
		}
	}
	return 0
}
