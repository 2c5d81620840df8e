package uplink

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"cmppgateway/gateway/internal/segment"
	"cmppgateway/gateway/sms"
)

// body is what a DELIVER carries.
type body struct {
	fmt, udhi int16
	content   []byte
}

// asItCame is the body of an uplink as its supplier sent it.
func asItCame(r *row) body {
	b := body{fmt: r.Fmt, content: r.Content}
	if sms.HasHeader(uint8(r.UDHI)) {
		b.udhi = 1
	}
	return b
}

func allAsTheyCame(parts []*row) (list []body) {
	for _, r := range parts {
		if r != nil {
			list = append(list, asItCame(r))
		}
	}
	return list
}

// payloads are the contents of segments without their headers; header is that of the first.
func payloads(parts []*row) (list []sms.Part, header []byte) {
	for i, r := range parts {
		_, _, h, payload, _ := sms.SplitHeader(r.Content) // it was a segment before
		list = append(list, sms.Part{Fmt: sms.Fmt(r.Fmt), Payload: payload})
		if i == 0 {
			header = h
		}
	}
	return list, header
}

// whole is a long uplink, cut anew so that no cut goes through a character; one that is no text as it says goes on as it
// came. text is "" then.
func whole(key *segment.Key, parts []*row) (list []body, text string) {
	segments, header := payloads(parts)
	f, udhi, content := sms.JoinContents(segments, header)
	l := sms.Long{Fmt: f, Header: udhi, Content: content, OutFmt: f, Ref: uint32(key.Concat.Ref)}
	if key.Concat.Wide {
		l.Ref |= sms.Ref16
	}
	_, payload, err := l.Payload()
	if err == nil {
		l.OutFmt, err = sms.OutFmt(f, payload, nil)
	}
	if err != nil {
		return allAsTheyCame(parts), ""
	}
	contents, has, err := l.Parts()
	if err != nil {
		return allAsTheyCame(parts), ""
	}
	text, _ = sms.DecodeText(f, payload) // "" for what holds no text
	return bodies(l.OutFmt, has, contents), text
}

func bodies(f sms.Fmt, udhi bool, contents [][]byte) (list []body) {
	for _, c := range contents {
		b := body{fmt: int16(f), content: c}
		if udhi {
			b.udhi = 1
		}
		list = append(list, b)
	}
	return list
}

// gap stands where a segment is missing.
func gap(number, total int) string { return fmt.Sprintf("[缺%d/%d]", number, total) }

// rest is a long uplink of which only some segments came (the others are nil): their text, with a mark for each that is
// missing. What holds no text goes on as it came.
func rest(key *segment.Key, parts []*row) []body {
	var text strings.Builder
	for i := 0; i < len(parts); i++ {
		if parts[i] == nil {
			text.WriteString(gap(i+1, len(parts)))
			continue
		}
		end := i
		for end < len(parts) && parts[end] != nil {
			end++
		}
		run, _ := payloads(parts[i:end])
		s, err := sms.JoinMixed(run)
		if err != nil {
			return allAsTheyCame(parts)
		}
		text.WriteString(s)
		i = end - 1
	}
	f := sms.PickFmt(text.String())
	contents, err := sms.Split(text.String(), f, key.Concat.Ref, key.Concat.Wide)
	if err != nil {
		return allAsTheyCame(parts)
	}
	return bodies(f, len(contents) > 1, contents)
}

// asks is the text of a single uplink, to be compared with words: also when its format does not fit its octets, which
// suppliers get wrong.
func asks(r *row) string {
	payload := r.Content
	if sms.HasHeader(uint8(r.UDHI)) {
		_, _, _, p, err := sms.SplitHeader(r.Content)
		if err != nil {
			return ""
		}
		payload = p
	}
	if s, err := sms.DecodeText(sms.Fmt(r.Fmt), payload); err == nil {
		return s
	}
	if utf8.Valid(payload) {
		return string(payload)
	}
	for _, f := range []sms.Fmt{sms.FmtGB18030, sms.FmtUCS2} {
		if s, err := sms.DecodeText(f, payload); err == nil {
			return s
		}
	}
	return ""
}
