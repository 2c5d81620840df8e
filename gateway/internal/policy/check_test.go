package policy_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"cmppgateway/gateway/internal/message"
	"cmppgateway/gateway/internal/policy"
	"cmppgateway/gateway/sms"
)

const (
	enterprise = 1
	strict     = 10 // signature required in front
	matching   = 11 // templates matched
	forcing    = 12 // templates forced
	ending     = 13 // signature at the end
	sleeping   = 14 // quiet over midnight
	resting    = 15 // quiet at noon
	free       = 16 // checked for nothing
)

func lists() policy.Lists {
	return policy.Lists{
		Modes: []policy.Modes{
			{App: strict, Signature: policy.SignatureRequired, Place: policy.Front},
			{App: matching, Template: policy.TemplateMatch},
			{App: forcing, Template: policy.TemplateForce},
			{App: ending, Signature: policy.SignatureRequired, Place: policy.End},
			{App: sleeping, QuietFrom: 21 * 60, QuietUntil: 8 * 60},
			{App: resting, QuietFrom: 12 * 60, QuietUntil: 14 * 60},
		},
		Signatures: []policy.Signature{
			{ID: 1, Enterprise: enterprise, Text: "北方", Status: policy.Approved},
			{ID: 2, Enterprise: enterprise, Text: "南方", Status: policy.Pending},
			{ID: 3, Enterprise: 2, Text: "西方", Status: policy.Approved},
		},
		Numbers: []policy.SignatureNumber{{Signature: 1, Number: "10690", Status: policy.Approved}, {Signature: 1, Number: "10691", Status: policy.Pending}},
		Templates: []policy.Template{
			{ID: 1, Enterprise: enterprise, Text: "验证码{code:d4-6}，{n:2}分钟内有效", Status: policy.Approved},
			{ID: 2, Enterprise: enterprise, App: 99, Text: "别处{x}", Status: policy.Approved},
			{ID: 3, Enterprise: enterprise, Text: "未批{x}", Status: policy.Pending},
			{ID: 4, Enterprise: enterprise, Text: "{name}，您好", Status: policy.Approved},
			{ID: 5, Enterprise: enterprise, Text: "代开{x:10}", Status: policy.Approved},
		},
		Keywords: []policy.Keyword{
			{ID: 1, Word: "赌博", Action: policy.Reject},
			{ID: 2, Word: "代开", Action: policy.Hold},
			{ID: 3, Enterprise: enterprise, Word: "DISCOUNT", Action: policy.Alert},
			{ID: 4, Enterprise: 2, Word: "别人", Action: policy.Reject},
		},
		Stats:   []policy.Stat{{App: strict, Reason: message.ReasonSignature, Stat: "SIGN:1"}},
		Demands: []policy.Demand{{Channel: 5, Number: "10690"}, {Channel: 6, Number: "10691"}},
	}
}

func newSet(t *testing.T, l policy.Lists) *policy.Set {
	t.Helper()
	s, faults := policy.New(l)
	if len(faults) > 0 {
		t.Fatal(errors.Join(faults...))
	}
	return s
}

var noon = time.Date(2026, 3, 5, 4, 0, 0, 0, time.UTC) // 12:00 in China

func TestCheck(t *testing.T) {
	t.Parallel()
	s := newSet(t, lists())
	past := noon.Add(-time.Second)
	for _, c := range []struct {
		name    string
		app     int32
		text    string
		change  func(*policy.Message)
		reason  message.Reason
		keyword int32
		held    bool
	}{
		{"plain", free, "hi", nil, message.NoReason, 0, false},
		{"enterprise disabled", free, "hi", func(m *policy.Message) { m.EnterpriseActive = false }, message.ReasonStatus, 0, false},
		{"application disabled", free, "hi", func(m *policy.Message) { m.ApplicationActive = false }, message.ReasonStatus, 0, false},
		{"status before format", free, "", func(m *policy.Message) { m.ApplicationActive, m.Content.Err = false, errors.New("odd") }, message.ReasonStatus, 0, false},
		{"format", free, "", func(m *policy.Message) { m.Content.Err = errors.New("odd") }, message.ReasonFormat, 0, false},
		{"format before expiry", free, "", func(m *policy.Message) { m.Content.Err, m.ValidUntil = errors.New("odd"), &past }, message.ReasonFormat, 0, false},
		{"expired before signature", strict, "hi", func(m *policy.Message) { m.ValidUntil = &past }, message.ReasonExpired, 0, false},
		{"ends now", strict, "【北方】hi", func(m *policy.Message) { m.ValidUntil = &noon }, message.ReasonExpired, 0, false},

		{"approved", strict, "【北方】hi", nil, message.NoReason, 0, false},
		{"pending", strict, "【南方】hi", nil, message.ReasonSignature, 0, false},
		{"of another enterprise", strict, "【西方】hi", nil, message.ReasonSignature, 0, false},
		{"none", strict, "hi", nil, message.ReasonSignature, 0, false},
		{"at the end, must be in front", strict, "hi【北方】", nil, message.ReasonSignature, 0, false},
		{"at the end", ending, "hi【北方】", nil, message.NoReason, 0, false},
		{"in front, must be at the end", ending, "【北方】hi", nil, message.ReasonSignature, 0, false},
		{"two", strict, "【北方】hi【北方】", nil, message.ReasonSignature, 0, false},
		{"square brackets are none", strict, "[北方]hi", nil, message.ReasonSignature, 0, false},
		{"binary has none", strict, "", nil, message.ReasonSignature, 0, false},
		{"signature before keyword", strict, "赌博", nil, message.ReasonSignature, 0, false},

		{"template", forcing, "【北方】验证码1234，5分钟内有效", nil, message.NoReason, 0, false},
		{"variable too long", forcing, "验证码1234567，5分钟内有效", nil, message.ReasonTemplate, 0, false},
		{"variable not digits", forcing, "验证码12a4，5分钟内有效", nil, message.ReasonTemplate, 0, false},
		{"more than the template", forcing, "验证码1234，5分钟内有效！", nil, message.ReasonTemplate, 0, false},
		{"template of another application", forcing, "别处有", nil, message.ReasonTemplate, 0, false},
		{"template not approved", forcing, "未批有", nil, message.ReasonTemplate, 0, false},
		{"variable first", forcing, "张三，您好", nil, message.NoReason, 0, false},
		{"no signature in a variable", forcing, "【北方】张【三】，您好", nil, message.ReasonTemplate, 0, false},
		{"match lets others pass", matching, "hi", nil, message.NoReason, 0, false},
		{"binary follows no template", forcing, "", nil, message.ReasonTemplate, 0, false},
		{"template before keyword", forcing, "赌博", nil, message.ReasonTemplate, 0, false},

		{"keyword", free, "来赌博吧", nil, message.ReasonKeyword, 1, false},
		{"keyword in the signature", free, "【赌博】hi", nil, message.ReasonKeyword, 1, false},
		{"keyword spaced out", free, "赌 . 　博", nil, message.ReasonKeyword, 1, false},
		{"keyword with something between", free, "赌了博", nil, message.NoReason, 0, false},
		{"keyword full-width", free, "ｄｉｓｃｏｕｎｔ", nil, message.NoReason, 3, false},
		{"of two the graver", free, "discount 代开 赌博", nil, message.ReasonKeyword, 1, false},
		{"held", free, "discount代开发票", nil, message.NoReason, 2, true},
		{"held, but its template was reviewed", matching, "代开发票", nil, message.NoReason, 0, false},
		{"rejected whatever its template", matching, "代开赌博", nil, message.ReasonKeyword, 1, false},
		{"keyword of others", free, "别人", nil, message.NoReason, 0, false},

		{"marketing in quiet hours", resting, "hi", func(m *policy.Message) { m.Lane = message.Marketing }, message.ReasonRisk, 0, false},
		{"notification in quiet hours", resting, "hi", nil, message.NoReason, 0, false},
		{"marketing outside", sleeping, "hi", func(m *policy.Message) { m.Lane = message.Marketing }, message.NoReason, 0, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			m := policy.Message{
				Enterprise: enterprise, App: c.app, EnterpriseActive: true, ApplicationActive: true, Lane: message.Notification,
				Content: policy.WholeText(c.text, sms.RuleCN7067),
			}
			if c.change != nil {
				c.change(&m)
			}
			v := s.Check(m, noon)
			if v.Reason != c.reason || v.Keyword != c.keyword || v.Held() != c.held {
				t.Fatalf("reason %q, keyword %d, held %t; want %q, %d, %t", v.Reason, v.Keyword, v.Held(), c.reason, c.keyword, c.held)
			}
		})
	}
}

func TestQuietHoursAreOfChina(t *testing.T) {
	t.Parallel()
	s := newSet(t, lists())
	for _, c := range []struct {
		app   int32
		at    string // UTC
		quiet bool
	}{
		{sleeping, "12:59", false},
		{sleeping, "13:00", true}, // 21:00
		{sleeping, "15:59", true},
		{sleeping, "16:00", true}, // midnight
		{sleeping, "23:59", true}, // 07:59
		{sleeping, "00:00", false},
		{resting, "03:59", false},
		{resting, "04:00", true},
		{resting, "06:00", false},
		{free, "13:00", false},
	} {
		at, err := time.Parse("2006-01-02 15:04", "2026-03-05 "+c.at)
		if err != nil {
			t.Fatal(err)
		}
		m := policy.Message{Enterprise: enterprise, App: c.app, EnterpriseActive: true, ApplicationActive: true, Lane: message.Marketing}
		if v := s.Check(m, at); (v.Reason == message.ReasonRisk) != c.quiet {
			t.Errorf("application %d at %s UTC: %q", c.app, c.at, v.Reason)
		}
	}
}

func TestBadNumber(t *testing.T) {
	t.Parallel()
	for reason, want := range map[message.Reason]message.Reason{
		message.NoReason: message.ReasonFormat, message.ReasonStatus: message.ReasonStatus, message.ReasonSignature: message.ReasonFormat,
	} {
		if got := (policy.Verdict{Reason: reason}).BadNumber(); got != want {
			t.Errorf("%q becomes %q, want %q", reason, got, want)
		}
	}
}

func TestFindSignature(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		text      string
		place     policy.Place
		signature string
		rest      string
		err       error
	}{
		{"【东方】hi", policy.Front, "东方", "hi", nil},
		{"hi【东方】", policy.End, "东方", "hi", nil},
		{"hi【东方】", policy.Either, "东方", "hi", nil},
		{"【东方】", policy.Front, "东方", "", nil},
		{"【东方】", policy.End, "东方", "", nil},
		{"hi", policy.Either, "", "", policy.ErrNoSignature},
		{"【东方】hi【北方】", policy.Either, "", "", policy.ErrSignatures},
		{"【【东方】hi", policy.Front, "", "", policy.ErrSignatures},
		{"【东方hi", policy.Front, "", "", policy.ErrSignatures},
		{"】东方【", policy.Either, "", "", policy.ErrSignaturePlace},
		{"a【东方】b", policy.Either, "", "", policy.ErrSignaturePlace},
		{" 【东方】hi", policy.Front, "", "", policy.ErrSignaturePlace},
		{"【东方】 hi", policy.Front, "", "", policy.ErrSignatureForm},
		{"hi　【东方】", policy.End, "", "", policy.ErrSignatureForm},
		{"【】hi", policy.Front, "", "", policy.ErrSignatureForm},
		{"【 东方】hi", policy.Front, "", "", policy.ErrSignatureForm},
		{"【东\x00方】hi", policy.Front, "", "", policy.ErrSignatureForm},
		{"【" + strings.Repeat("长", policy.SignatureMax+1) + "】hi", policy.Front, "", "", policy.ErrSignatureForm},
		{"【" + strings.Repeat("长", policy.SignatureMax) + "】hi", policy.Front, strings.Repeat("长", policy.SignatureMax), "hi", nil},
	} {
		signature, rest, err := policy.FindSignature(c.text, c.place)
		if c.err != nil {
			c.rest = c.text
		}
		if signature != c.signature || rest != c.rest || !errors.Is(err, c.err) {
			t.Errorf("%q at %d: %q, %q, %v; want %q, %q, %v", c.text, c.place, signature, rest, err, c.signature, c.rest, c.err)
		}
	}
}

func TestTemplatesThatAreNone(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"{x}", "", "a{x", "a}x", "a{}", "a{x:0}", "a{x:501}", "a{x:9-3}", "a{x:z3}", "a{x y}", "【a】b{x}", "a{{x}}", "a{x:d}{y:-3}",
		"a" + strings.Repeat("{x:500}", 3),
	} {
		if err := policy.CheckTemplate(text); err == nil {
			t.Errorf("%q was taken", text)
		}
	}
	for _, text := range []string{"a", "a{x}", "{x}b", "a{名:d4-6}b{2:w10}", "a.*+?()[]\\^$|{x:d}"} {
		if err := policy.CheckTemplate(text); err != nil {
			t.Errorf("%q: %v", text, err)
		}
	}
	l := lists()
	l.Templates = append(l.Templates, policy.Template{ID: 7, Enterprise: enterprise, Text: "{x}", Status: policy.Approved})
	l.Keywords = append(l.Keywords, policy.Keyword{ID: 8, Word: "C++", Action: policy.Reject}, policy.Keyword{ID: 9, Word: "。", Action: policy.Reject})
	s, faults := policy.New(l)
	if len(faults) != 3 || !strings.Contains(errors.Join(faults...).Error(), "template 7") {
		t.Errorf("faults %v, want three", faults)
	}
	m := policy.Message{Enterprise: enterprise, App: forcing, EnterpriseActive: true, ApplicationActive: true, Content: policy.WholeText("anything", sms.RuleCN7067)}
	if v := s.Check(m, noon); v.Reason != message.ReasonTemplate {
		t.Errorf("a template without fixed text matches: %+v", v)
	}
	if m.App = free; s.Check(m, noon).Reason != message.NoReason {
		t.Error("a keyword without letters matches")
	}
}

// The automaton finds what a plain search finds.
func TestKeywordsLikeAPlainSearch(t *testing.T) {
	t.Parallel()
	letter := rapid.SampledFrom([]rune("赌博开a1"))
	rapid.Check(t, func(t *rapid.T) {
		words := rapid.SliceOfN(rapid.StringOfN(letter, 2, 5, -1), 1, 12).Draw(t, "words")
		actions := rapid.SliceOfN(rapid.IntRange(1, 3), len(words), len(words)).Draw(t, "actions")
		text := rapid.StringOfN(letter, 0, 30, -1).Draw(t, "text")
		var l policy.Lists
		want, grave := int32(0), policy.Action(9)
		for i, w := range words {
			k := policy.Keyword{ID: int32(i + 1), Enterprise: int32(i % 2), Word: w, Action: policy.Action(actions[i])}
			l.Keywords = append(l.Keywords, k)
			if strings.Contains(text, w) && k.Action < grave {
				want, grave = k.ID, k.Action
			}
		}
		s, faults := policy.New(l)
		if len(faults) > 0 {
			t.Fatal(faults)
		}
		m := policy.Message{Enterprise: 1, EnterpriseActive: true, ApplicationActive: true, Content: policy.WholeText(text, sms.RuleCN7067)}
		v := s.Check(m, noon)
		if want == 0 && v.Keyword != 0 || want != 0 && v.Action != grave {
			t.Fatalf("found %d (%s), want one with %s such as %d", v.Keyword, v.Action, grave, want)
		}
		if v.Keyword != 0 && !strings.Contains(text, words[v.Keyword-1]) {
			t.Fatalf("found %q, which is not there", words[v.Keyword-1])
		}
	})
}

func TestClosedChannelsAndStats(t *testing.T) {
	t.Parallel()
	s := newSet(t, lists())
	for _, c := range []struct {
		enterprise int32
		signature  string
		want       string
	}{
		{enterprise, "北方", "[6]"}, {enterprise, "南方", "[5 6]"}, {enterprise, "", "[5 6]"}, {2, "北方", "[5 6]"},
	} {
		if got := fmt.Sprint(s.Closed(c.enterprise, c.signature)); got != c.want {
			t.Errorf("closed to %q of %d: %s, want %s", c.signature, c.enterprise, got, c.want)
		}
	}
	if got := s.Stat(strict, message.ReasonSignature); got != "SIGN:1" {
		t.Errorf("stat %q", got)
	}
	for _, got := range []string{s.Stat(free, message.ReasonSignature), (*policy.Set)(nil).Stat(strict, message.ReasonSignature)} {
		if got != "SIGFAIL" {
			t.Errorf("stat %q", got)
		}
	}
}

func BenchmarkCheck(b *testing.B) {
	l := lists()
	for i := range 5000 {
		l.Keywords = append(l.Keywords, policy.Keyword{ID: int32(100 + i), Word: fmt.Sprintf("词%d语", i), Action: policy.Reject})
		l.Templates = append(l.Templates, policy.Template{ID: int32(100 + i), Enterprise: enterprise, Text: fmt.Sprintf("模板%d{x}", i), Status: policy.Approved})
	}
	s, _ := policy.New(l)
	m := policy.Message{
		Enterprise: enterprise, App: matching, EnterpriseActive: true, ApplicationActive: true,
		Content: policy.WholeText("【北方】验证码123456，5分钟内有效，请勿转告他人，如非本人操作请忽略。", sms.RuleCN7067),
	}
	b.ReportAllocs()
	for b.Loop() {
		s.Check(m, noon)
	}
}
