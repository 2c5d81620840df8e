package cmpp_test

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"cmppgateway/gateway/cmpp"
)

func TestMsgID(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		at      time.Time
		gateway uint32
		seq     uint16
		id      cmpp.MsgID
		decimal string
		hex     string
		text    string
	}{
		"first": {
			time.Date(2024, 1, 2, 3, 4, 5, 0, cmpp.Shanghai), 1001, 1,
			1228428541564616705, "1228428541564616705", "110c414003e90001", "0102030405000100100001",
		},
		"top bit set": {
			time.Date(2023, 12, 31, 23, 59, 59, 0, cmpp.Shanghai), 79101, 65535,
			14978900622684585983, "14978900622684585983", "cfdfbec134fdffff", "1231235959007910165535",
		},
		"captured in May": {
			time.Date(2020, 5, 4, 10, 36, 38, 0, cmpp.Shanghai), 42, 42701,
			0x522a4980002aa6cd, "5920625474239375053", "522a4980002aa6cd", "0504103638000004242701",
		},
		"captured in August": {
			time.Date(2020, 8, 11, 19, 14, 35, 0, cmpp.Shanghai), 0xc09152 & 0x3fffff, 7,
			0x85cce8c091520007, "9641336816062824455", "85cce8c091520007", "0811191435003720200007",
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := cmpp.NewMsgID(tt.at, tt.gateway, tt.seq); got != tt.id {
				t.Errorf("NewMsgID = %#x, want %#x", uint64(got), uint64(tt.id))
			}
			if got := cmpp.NewMsgID(tt.at.UTC(), tt.gateway, tt.seq); got != tt.id {
				t.Errorf("NewMsgID of the instant in UTC = %#x, want %#x", uint64(got), uint64(tt.id))
			}
			if got := tt.id.String(); got != tt.decimal {
				t.Errorf("String = %s, want %s", got, tt.decimal)
			}
			for _, form := range []string{tt.decimal, "0" + tt.decimal, tt.hex, upper(tt.hex), tt.text} {
				if len(form) > 20 && form != tt.text {
					continue
				}
				if got, err := cmpp.ParseMsgID(form); err != nil || got != tt.id {
					t.Errorf("ParseMsgID(%q) = %#x, %v; want %#x", form, uint64(got), err, uint64(tt.id))
				}
			}
			month, day, hour, minute, second, gateway, seq := tt.id.Fields()
			if month != int(tt.at.Month()) || day != tt.at.Day() || hour != tt.at.Hour() || minute != tt.at.Minute() ||
				second != tt.at.Second() || gateway != tt.gateway || seq != tt.seq {
				t.Errorf("Fields = %d %d %d %d %d %d %d, want those of %v", month, day, hour, minute, second, gateway, seq, tt)
			}
		})
	}
}

func upper(s string) string {
	b := []byte(s)
	for i, c := range b {
		if c >= 'a' && c <= 'f' {
			b[i] = c - 'a' + 'A'
		}
	}
	return string(b)
}

// TestMsgIDBits sets one field at a time and looks at the bits.
func TestMsgIDBits(t *testing.T) {
	t.Parallel()
	base := time.Date(2024, 1, 1, 0, 0, 0, 0, cmpp.Shanghai)
	zero := cmpp.NewMsgID(base, 0, 0)
	tests := map[string]struct {
		id   cmpp.MsgID
		want cmpp.MsgID
	}{
		"month 1 day 1": {zero, 1<<60 | 1<<55},
		"month":         {cmpp.NewMsgID(base.AddDate(0, 11, 0), 0, 0), 12<<60 | 1<<55},
		"day":           {cmpp.NewMsgID(base.AddDate(0, 0, 30), 0, 0), 1<<60 | 31<<55},
		"hour":          {cmpp.NewMsgID(base.Add(23*time.Hour), 0, 0), zero | 23<<50},
		"minute":        {cmpp.NewMsgID(base.Add(59*time.Minute), 0, 0), zero | 59<<44},
		"second":        {cmpp.NewMsgID(base.Add(59*time.Second), 0, 0), zero | 59<<38},
		"gateway":       {cmpp.NewMsgID(base, 4194303, 0), zero | 4194303<<16},
		"gateway cut":   {cmpp.NewMsgID(base, 4194304, 0), zero},
		"sequence":      {cmpp.NewMsgID(base, 0, 65535), zero | 65535},
	}
	for name, tt := range tests {
		if tt.id != tt.want {
			t.Errorf("%s: %#016x, want %#016x", name, uint64(tt.id), uint64(tt.want))
		}
	}
}

func TestParseMsgID(t *testing.T) {
	t.Parallel()
	const bad = "error"
	tests := map[string]string{
		"0":                      "0",
		"18446744073709551615":   "18446744073709551615",
		"18446744073709551616":   bad, // above 64 bits
		"00000000000000000042":   "42",
		"000000000000000000042":  bad, // 21 digits
		"812FC7470000001B":       "9308878062554710043",
		"1234567890123456":       "1234567890123456", // sixteen digits are decimal …
		"0000000000000042":       "66",               // … unless they begin with a zero
		"110c414003e9000g":       bad,
		"110c414003e9001":        bad, // fifteen hex digits
		"0x110c414003e90001":     bad,
		"0102030405000100100001": "1228428541564616705",
		"1631635963419430365535": bad, // hour 35 does not fit five bits
		"1531316363419430365535": "18446744073709551615",
		"1531316363419430465535": bad, // gateway code above 22 bits
		"1531316363419430365536": bad, // sequence above 16 bits
		"010203040500010010000x": bad,
		"-3467843451024965633":   bad,
		"":                       bad,
		" 1":                     bad,
		"一":                      bad,
	}
	for s, want := range tests {
		id, err := cmpp.ParseMsgID(s)
		got := id.String()
		if err != nil {
			got = bad
		}
		if got != want {
			t.Errorf("ParseMsgID(%q) = %v, %v; want %s", s, id, err, want)
		}
	}
}

func TestParseMsgIDUndoesString(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		id := cmpp.MsgID(rapid.Uint64().Draw(t, "id"))
		if got, err := cmpp.ParseMsgID(id.String()); err != nil || got != id {
			t.Fatalf("ParseMsgID(%s) = %v, %v", id, got, err)
		}
	})
}
