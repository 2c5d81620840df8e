package policy

import (
	"errors"
	"strings"
	"unicode"
	"unicode/utf8"
)

// SignatureMax is how many characters a signature may have.
const SignatureMax = 32

const (
	opening = "【"
	closing = "】"
)

// Faults of a text's signature.
var (
	ErrNoSignature    = errors.New("no signature: the text has no 【…】")
	ErrSignatures     = errors.New("more than one 【 or 】")
	ErrSignaturePlace = errors.New("the signature is not where it must be")
	ErrSignatureForm  = errors.New("the signature is empty, too long, or has spaces around it")
)

// FindSignature takes the one 【…】 of a text at place, and returns what is between its brackets and the text without it.
// Spaces between signature and text, or around either, are faults: suppliers refuse them.
func FindSignature(text string, place Place) (signature, rest string, err error) {
	opened, closed := strings.Count(text, opening), strings.Count(text, closing)
	if opened == 0 && closed == 0 {
		return "", text, ErrNoSignature
	}
	if opened != 1 || closed != 1 {
		return "", text, ErrSignatures
	}
	from, to := strings.Index(text, opening), strings.Index(text, closing)
	if to < from {
		return "", text, ErrSignaturePlace
	}
	before, after := text[:from], text[to+len(closing):]
	signature = text[from+len(opening) : to]
	switch {
	case before == "" && place != End:
		rest = after
		if first, _ := utf8.DecodeRuneInString(after); after != "" && unicode.IsSpace(first) {
			return "", text, ErrSignatureForm
		}
	case after == "" && place != Front:
		rest = before
		if last, _ := utf8.DecodeLastRuneInString(before); before != "" && unicode.IsSpace(last) {
			return "", text, ErrSignatureForm
		}
	default:
		return "", text, ErrSignaturePlace
	}
	if !validSignature(signature) {
		return "", text, ErrSignatureForm
	}
	return signature, rest, nil
}

// validSignature also keeps out of the database what a text column cannot hold.
func validSignature(s string) bool {
	return s != "" && utf8.ValidString(s) && utf8.RuneCountInString(s) <= SignatureMax && strings.TrimSpace(s) == s && !strings.ContainsFunc(s, unicode.IsControl)
}
