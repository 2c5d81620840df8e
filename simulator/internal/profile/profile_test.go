package profile_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"cmppgateway/simulator/internal/profile"
	"cmppgateway/simulator/ismg"
)

const small = `
listen: 127.0.0.1:0
accounts: [{id: "900001", secret: s}]
`

func TestParse(t *testing.T) {
	t.Parallel()
	f, err := profile.Parse([]byte(small + `
duration: 2s
seed: 7
behaviour:
  submit_rtt: {dist: lognormal, p50: 14ms, p99: 60ms}
  deck: {block: 100, receipt_failed: {UNDELIV: 3}, results: {13: 2}}
customers: [{id: "900001", secret: s, tps: 200, hold: 1500ms, numbers: 13800000000}]
`))
	if err != nil {
		t.Fatal(err)
	}
	deck := f.Behaviour.Deck
	if f.Duration != 2*time.Second || f.Seed != 7 || f.Accounts[0].ID != "900001" || f.Behaviour.SubmitRTT.Kind != ismg.Lognormal ||
		deck.ReceiptFailed["UNDELIV"] != 3 || deck.Results[13] != 2 || f.Customers[0].Messages() != 300 {
		t.Errorf("%+v", f)
	}
}

// TestProblems: every mistake at once, each with its place.
func TestProblems(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, text string
		want       []string
	}{
		{"unknown keys and units", "listen: 127.0.0.1:0\nduration: 5\nlisten_on: x\naccounts:\n  - {id: \"900001\", windows: 3}\ncustomers:\n  - {id: \"1\", tps: 0100}\n", []string{
			"2:11: cannot construct !!int `5` into time.Duration", "3:1: field listen_on not found", "5:20: field windows not found", "7:20: leading zero in 0100",
		}},
		{"impossible values", "listen: nowhere\naccounts:\n  - id: toolong\n    window: -1\nbehaviour:\n  deck: {block: 10, no_receipt: 11}\n  submit_rtt: {dist: normal}\ncustomers:\n  - {id: \"1\", arrivals: never}\n", []string{
			`1:9: listen: "nowhere" is not host:port`, `3:9: accounts[0].id: "toolong"`, "4:13: accounts[0].window: -1", "6:9: behaviour.deck: 11 cards", `7:22: behaviour.submit_rtt.dist: "normal"`, `9:25: customers[0].arrivals: "never"`,
		}},
		{"no accounts", "listen: 127.0.0.1:0\n", []string{"1:1: accounts: at least one"}},
		{"syntax", "listen: [\n", []string{"2:1: did not find"}},
		{"two documents", small + "---\n" + small, []string{"expected single document"}},
		{"nothing", "", []string{"no documents"}},
		{"key twice", small + "listen: 127.0.0.1:1\n", []string{`4:1: mapping key "listen" already defined`}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			_, err := profile.Parse([]byte(c.text))
			problems, ok := errors.AsType[profile.ProblemsError](err)
			if !ok {
				t.Fatalf("error %v", err)
			}
			if len(problems) != len(c.want) {
				t.Errorf("%d problems: %v", len(problems), err)
			}
			for i, want := range c.want[:min(len(c.want), len(problems))] {
				if !strings.Contains(problems[i].String(), want) {
					t.Errorf("problem %d: %s, want %s", i, problems[i], want)
				}
			}
		})
	}
}

func TestRemote(t *testing.T) {
	t.Parallel()
	f := profile.File{Listen: "127.0.0.1:1", HTTP: "[::1]:2", Customers: []profile.Customer{{Addr: "localhost:3"}, {}, {Addr: "10.0.0.1:4"}, {Addr: "gateway:5"}}}
	if got := f.Remote(); !slices.Equal(got, []string{"10.0.0.1:4", "gateway:5"}) {
		t.Errorf("remote %v", got)
	}
	f = profile.File{Listen: ":7890"}
	if got := f.Remote(); len(got) != 1 {
		t.Errorf("every interface is remote, got %v", got)
	}
}
