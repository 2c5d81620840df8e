package cmpp

import (
	"crypto/md5"
	"crypto/subtle"
	"encoding/binary"
	"fmt"
	"time"
)

// Timestamp returns MMDDHHMMSS of t in Asia/Shanghai as a number. Take one reading of the clock for the Timestamp field
// and for AuthSource.
func Timestamp(t time.Time) uint32 {
	t = t.In(Shanghai)
	_, month, day := t.Date()
	hour, minute, second := t.Clock()
	return uint32((((int(month)*100+day)*100+hour)*100+minute)*100 + second)
}

// AuthSource returns the AuthenticatorSource of a CONNECT: MD5 of the id as it is (not padded), nine zero octets, the
// secret and the timestamp as ten digits (CMPP 2.0 §7.4.1.1). The secret may have any length.
func AuthSource(sourceAddr string, secret []byte, timestamp uint32) [16]byte {
	b := make([]byte, 0, len(sourceAddr)+9+len(secret)+10)
	b = append(b, sourceAddr...)
	b = append(b, zeros[:9]...)
	b = append(b, secret...)
	b = fmt.Appendf(b, "%010d", timestamp)
	return md5.Sum(b)
}

// CheckAuthSource reports whether got is the AuthenticatorSource of the account. Ids shorter than six octets are hashed
// bare by most clients and padded with zero octets to six by some, so either is right. The time taken does not depend on
// which octets differ.
func CheckAuthSource(got [16]byte, sourceAddr string, secret []byte, timestamp uint32) bool {
	padded := sourceAddr
	if n := len(sourceAddr); n < 6 {
		padded += string(zeros[:6-n])
	}
	bare, pad := AuthSource(sourceAddr, secret, timestamp), AuthSource(padded, secret, timestamp)
	return subtle.ConstantTimeCompare(got[:], bare[:])|subtle.ConstantTimeCompare(got[:], pad[:]) == 1
}

// AuthISMG returns the AuthenticatorISMG of a CONNECT_RESP: MD5 of the status as wide as it stands on the wire in v (one
// octet in 2.x, four in 3.0), the AuthenticatorSource received and the secret (CMPP 2.0 §7.4.1.2). Peers compute it in
// several ways; a mismatch is worth a log line, never a refusal. Of a 2.x status the low octet is used.
func AuthISMG(status uint32, v Version, authSource [16]byte, secret []byte) [16]byte {
	b := make([]byte, 0, 4+len(authSource)+len(secret))
	b = binary.BigEndian.AppendUint32(b, status)
	if !v.Wide() {
		b = append(b[:0], b[3])
	}
	b = append(b, authSource[:]...)
	b = append(b, secret...)
	return md5.Sum(b)
}
