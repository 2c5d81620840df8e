package supplier

import (
	"bytes"

	"cmppgateway/gateway/sms"
)

// The brackets of a signature as octets of each Msg_Fmt that has them.
var (
	ucs2Brackets   = [2][]byte{{0x30, 0x10}, {0x30, 0x11}}
	littleBrackets = [2][]byte{{0x10, 0x30}, {0x11, 0x30}} // behind a byte-order mark
	gbBrackets     = [2][]byte{{0xa1, 0xbe}, {0xa1, 0xbf}}
)

// longestSignature bounds how far a closing bracket is looked for, in characters: a text that opens with one and closes it
// much later is no signature.
const longestSignature = 34

// unsigned is content without the signature 【…】 that it begins or ends with; first and last say whether it is the first and
// the last part of its message, where a signature may be. The header of a long message stays. What has no signature, or is
// nothing else, is returned as it is.
func unsigned(format sms.Fmt, udhi uint8, content []byte, first, last bool) []byte {
	header := 0
	if udhi&0x41 != 0 && len(content) > 0 {
		if header = int(content[0]) + 1; header > len(content) {
			return content
		}
	}
	text := content[header:]
	brackets := gbBrackets
	switch {
	case format == sms.FmtGB18030:
	case format != sms.FmtUCS2:
		return content
	case bytes.HasPrefix(text, []byte{0xff, 0xfe}):
		brackets, header = littleBrackets, header+2
	case bytes.HasPrefix(text, []byte{0xfe, 0xff}):
		brackets, header = ucs2Brackets, header+2
	default:
		brackets = ucs2Brackets
	}
	text = content[header:]
	from, to, ok := signatureIn(text, brackets, format == sms.FmtGB18030)
	if !ok || from == 0 && !first || from > 0 && !last || to-from == len(text) {
		return content
	}
	return bytes.Join([][]byte{content[:header], text[:from], text[to:]}, nil)
}

// signatureIn finds the signature at the front of the text, else at its end. It walks over whole characters: half of one and
// half of the next may look like a bracket.
func signatureIn(text []byte, brackets [2][]byte, gb bool) (from, to int, ok bool) {
	opened, chars := -1, 0
	for i := 0; i < len(text); {
		width := 2
		switch {
		case gb && text[i] < 0x80:
			width = 1
		case gb && i+1 < len(text) && text[i+1] >= '0' && text[i+1] <= '9':
			width = 4
		}
		end := min(i+width, len(text))
		switch {
		case bytes.Equal(text[i:end], brackets[0]):
			opened, chars = i, 0
		case opened >= 0 && bytes.Equal(text[i:end], brackets[1]):
			if opened == 0 || end == len(text) {
				return opened, end, true
			}
			opened = -1
		}
		if chars++; chars > longestSignature {
			opened = -1
		}
		i = end
	}
	return 0, 0, false
}
