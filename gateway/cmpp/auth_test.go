package cmpp_test

import (
	"encoding/hex"
	"testing"
	"time"

	"cmppgateway/gateway/cmpp"
)

func TestAuthSource(t *testing.T) {
	t.Parallel()
	secret := []byte("1234")
	tests := map[string]struct {
		id        string
		timestamp uint32
		want      string
	}{
		"nine-digit timestamp": {"901234", 102030405, "e45edee925b9c275458dfcc54b2bebd8"},
		"ten-digit timestamp":  {"901234", 1231235959, "c57defc24389aed825f2a326e0e5167d"},
		"short id stays bare":  {"12345", 102030405, "3f1dba8af405775ff2f38615c2588b3a"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := cmpp.AuthSource(tt.id, secret, tt.timestamp)
			if hex.EncodeToString(got[:]) != tt.want {
				t.Errorf("AuthSource = %x, want %s", got, tt.want)
			}
			if !cmpp.CheckAuthSource(got, tt.id, secret, tt.timestamp) {
				t.Error("CheckAuthSource refuses it")
			}
		})
	}
}

func TestCheckAuthSource(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		digest    string
		id        string
		secret    string
		timestamp uint32
		want      bool
	}{
		"right":                        {"e45edee925b9c275458dfcc54b2bebd8", "901234", "1234", 102030405, true},
		"leading zero lost in hash":    {"b0d4dda10f9c8925ecd863cde559259d", "901234", "1234", 102030405, false},
		"bare short id":                {"3f1dba8af405775ff2f38615c2588b3a", "12345", "1234", 102030405, true},
		"padded short id":              {"8923e270c00024a7ccb2bcf8f8298116", "12345", "1234", 102030405, true},
		"other secret":                 {"e45edee925b9c275458dfcc54b2bebd8", "901234", "12345", 102030405, false},
		"one second later":             {"e45edee925b9c275458dfcc54b2bebd8", "901234", "1234", 102030406, false},
		"other id":                     {"e45edee925b9c275458dfcc54b2bebd8", "901235", "1234", 102030405, false},
		"last octet of digest differs": {"e45edee925b9c275458dfcc54b2bebd9", "901234", "1234", 102030405, false},
		"empty digest":                 {"00000000000000000000000000000000", "901234", "1234", 102030405, false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := cmpp.CheckAuthSource(digest(tt.digest), tt.id, []byte(tt.secret), tt.timestamp); got != tt.want {
				t.Errorf("CheckAuthSource = %v, want %v", got, tt.want)
			}
		})
	}
}

// TestSecretOfAnyLength guards against a digest buffer sized for six-octet secrets.
func TestSecretOfAnyLength(t *testing.T) {
	t.Parallel()
	seen := map[[16]byte]int{}
	for n := range 40 {
		sum := cmpp.AuthSource("901234", make([]byte, n), 102030405)
		if m, dup := seen[sum]; dup {
			t.Errorf("secrets of %d and %d octets give one digest", m, n)
		}
		seen[sum] = n
	}
}

func TestAuthISMG(t *testing.T) {
	t.Parallel()
	const asciiZero = "be69c561cc6e05e23898a932c5bfe5b1" // the digest of a peer that hashes the character "0"
	source := digest("e45edee925b9c275458dfcc54b2bebd8")
	tests := map[string]struct {
		version cmpp.Version
		want    string
	}{
		"one octet":         {cmpp.V20, "30379ada95177b628ad0bc5ddeac0ddd"},
		"one octet, 2.1":    {cmpp.V21, "30379ada95177b628ad0bc5ddeac0ddd"},
		"one octet, 0x01":   {0x01, "30379ada95177b628ad0bc5ddeac0ddd"},
		"four octets":       {cmpp.V30, "af8b00451a390b4990321de5bfca09c2"},
		"four octets, 0x7F": {0x7F, "af8b00451a390b4990321de5bfca09c2"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := cmpp.AuthISMG(0, tt.version, source, []byte("1234"))
			if hex.EncodeToString(got[:]) != tt.want {
				t.Errorf("AuthISMG = %x, want %s", got, tt.want)
			}
			if hex.EncodeToString(got[:]) == asciiZero {
				t.Error("AuthISMG hashes the status as text")
			}
			if other := cmpp.AuthISMG(1, tt.version, source, []byte("1234")); other == got {
				t.Error("the status is not part of the digest")
			}
		})
	}
}

func TestTimestamp(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		at   time.Time
		want uint32
	}{
		"leading zero":             {time.Date(2024, 1, 2, 3, 4, 5, 0, cmpp.Shanghai), 102030405},
		"last second of the year":  {time.Date(2023, 12, 31, 23, 59, 59, 999_999_999, cmpp.Shanghai), 1231235959},
		"UTC is printed eight on":  {time.Date(2024, 1, 1, 19, 4, 5, 0, time.UTC), 102030405},
		"UTC new year's eve":       {time.Date(2023, 12, 31, 16, 0, 0, 0, time.UTC), 101000000},
		"afternoon has 24 hours":   {time.Date(2024, 6, 7, 15, 0, 0, 0, cmpp.Shanghai), 607150000},
		"zone with daylight hours": {time.Date(2024, 7, 1, 12, 0, 0, 0, time.FixedZone("", -4*3600)), 702000000},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := cmpp.Timestamp(tt.at); got != tt.want {
				t.Errorf("Timestamp = %d, want %d", got, tt.want)
			}
		})
	}
}
