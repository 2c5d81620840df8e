package routing_test

import (
	"testing"

	"cmppgateway/gateway/internal/routing"
)

func TestParsePrefix(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"1380028": "1380028", "^1380028": "1380028", "^1380028.*": "1380028", "^1380028.*$": "1380028", `^1380028\d*`: "1380028",
		`^1380028\d*$`: "1380028", "^1380028[0-9]*$": "1380028", `^1380028\d{4}$`: "1380028", "^1380028[0-9]{4}": "1380028",
		"^13800138000$": "13800138000", "1": "1", "^1441": "1441", `^1441\d{9}$`: "1441", "^1441000000001$": "1441000000001", "14": "14",
	} {
		if got, err := routing.ParsePrefix(text); err != nil || got != want {
			t.Errorf("%q is %q, %v; want %q", text, got, err, want)
		}
	}
	for _, text := range []string{
		"", "^", "1380028.*", "138|139", "^138|^139", "^13[89]", "^138.", "^138+", "^138.+", "^138?", "(^138)", "^1380028$", `^1380028\d{5}$`, `^1380028\d{3}`,
		`^1380028\d{4,}$`, "^(?i)138", "^86138", "+86138", "138x", " 138", "138 ", "^13800138000138", "^0", `^1441\d{7}$`, `^14\d{9}$`, `^1\d{10}$`, "^14412345678$",
		"^138.*8$", "38$", "^138\n",
	} {
		if got, err := routing.ParsePrefix(text); err == nil {
			t.Errorf("%q was taken as %q", text, got)
		}
	}
}

func TestPortedNumbersComeBetweenRulesAndSegments(t *testing.T) {
	t.Parallel()
	table := newTable(t, routing.Rule{Prefix: "1390000", Carrier: routing.Telecom})
	for _, c := range []struct {
		number         uint64
		override, want routing.Carrier
	}{
		{13800138000, routing.Unknown, routing.Mobile},
		{13800138000, routing.Unicom, routing.Unicom},
		{13900000001, routing.Unicom, routing.Telecom}, // the rule
		{15412345678, routing.Unicom, routing.Unicom},  // no segment
		{1380013800, routing.Unicom, routing.Unknown},  // no number
	} {
		if got := table.CarrierOf(c.number, c.override); got != c.want {
			t.Errorf("%d ported to %s: %s, want %s", c.number, c.override, got, c.want)
		}
	}
}

func TestEnabled(t *testing.T) {
	t.Parallel()
	got := group(channel(1, 0, 1), disabled(channel(2, 0, 1)), channel(3, 1, 1)).Enabled()
	if len(got) != 2 || got[0].ChannelID != 1 || got[1].ChannelID != 3 {
		t.Errorf("enabled: %+v", got)
	}
}
