package cmpp

import (
	"strconv"
	"time"
)

// Version is the protocol version octet of CONNECT: the major number in the high nibble, the minor in the low one.
// Any value may arrive from a peer (0x01, 0x02, 0x12 and 0x7F have been seen).
type Version uint8

// Versions with a published specification. V21 uses the field sizes of V20.
const (
	V20 Version = 0x20
	V21 Version = 0x21
	V30 Version = 0x30
)

// Wide reports whether v uses the 3.0 field sizes (major number 3 or above) rather than those of 2.x.
func (v Version) Wide() bool { return v>>4 >= 3 }

// String returns the version as "major.minor".
func (v Version) String() string {
	return strconv.Itoa(int(v>>4)) + "." + strconv.Itoa(int(v&0x0F))
}

// shanghaiOffset is the distance of China Standard Time from UTC in seconds; there has been no daylight saving since 1991.
const shanghaiOffset = 8 * 60 * 60

// Shanghai is the zone of every CMPP wall-clock field. It is a fixed offset, so that no zone database is needed.
var Shanghai = time.FixedZone("Asia/Shanghai", shanghaiOffset)

// pick returns the width of a field in the layout of v.
func (v Version) pick(narrow, wide int) int {
	if v.Wide() {
		return wide
	}
	return narrow
}
