package settings_test

import (
	"strings"
	"testing"
	"time"

	"cmppgateway/gateway/internal/message"
	"cmppgateway/gateway/internal/policy"
	"cmppgateway/gateway/internal/routing"
	"cmppgateway/gateway/internal/settings"
	"cmppgateway/gateway/sms"
)

func TestLoadPolicy(t *testing.T) {
	t.Parallel()
	pool := database(
		t,
		`INSERT INTO enterprise_policy VALUES (1, 1, 2, 3, 4)`,
		`INSERT INTO application_policy VALUES (7, 1, 2, 1, 5, 60, 1260, 480)`,
		`INSERT INTO application_policy (app_id) VALUES (8)`,
		`INSERT INTO signature (id, enterprise_id, text, status) VALUES (1, 1, '北方', 2), (2, 1, '南方', 1)`,
		`INSERT INTO signature_number VALUES (1, '10690', 2), (1, '10691', 1)`,
		`INSERT INTO template (id, enterprise_id, text, status) VALUES (1, 1, '您好{x}', 2), (2, 1, '{x}', 2), (3, 1, '再见{x}', 3)`,
		`INSERT INTO keyword (id, enterprise_id, word, action, enabled) VALUES (1, 0, '赌博', 1, true), (2, 0, '您好', 1, false)`,
		`INSERT INTO application_stat VALUES (7, 1, 'SIGN:1')`,
		`INSERT INTO supplier_account VALUES (3, 32, 4, 16, 500, '127.0.0.1:7891', '800001', 'key', 'north')`,
		`INSERT INTO channel (id, account_id, access_number, name, signature_required) VALUES (10, 3, '10690', 'a', true), (11, 3, '10691', 'b', true), (12, 3, '10691', 'c', false)`,
		`INSERT INTO prefix_rule (prefix, carrier, until) VALUES ('138', 2, now() - interval '1 second'), ('139', 2, now() + interval '1 hour')`,
	)
	s, err := settings.Load(t.Context(), pool)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := s.Policy.Limits(1), (policy.Limits{Enterprise: 1, Minute: 1, Hour: 2, Day: 3, Quota: 4}); got != want {
		t.Errorf("limits %+v, want %+v", got, want)
	}
	if got := s.Policy.Limits(2).Day; got != 10 {
		t.Errorf("%d messages a day by default, want 10", got)
	}
	want := policy.Modes{
		App: 7, Signature: policy.SignatureRequired, Place: policy.End, Template: policy.TemplateMatch, Quota: 5, DuplicateSeconds: 60, QuietFrom: 1260, QuietUntil: 480,
	}
	if got := s.Policy.Modes(7); got != want {
		t.Errorf("modes %+v, want %+v", got, want)
	}
	if got := s.Policy.Modes(8); got.Signature != policy.SignatureRequired || got.Place != policy.Front || got.Template != policy.TemplateOff {
		t.Errorf("modes of a row of defaults: %+v", got)
	}
	if len(s.Faults) != 1 || !strings.Contains(s.Faults[0].Error(), "template 2") {
		t.Errorf("faults %v, want one about template 2", s.Faults)
	}
	check := func(text string) policy.Verdict {
		return s.Policy.Check(policy.Message{
			Enterprise: 1, App: 7, EnterpriseActive: true, ApplicationActive: true, Content: policy.WholeText(text, sms.RuleCN7067),
		}, time.Now())
	}
	for text, want := range map[string]policy.Verdict{
		"您好张三【北方】": {Signature: "北方", Template: 1},
		"您好张三【南方】": {Signature: "南方", Reason: message.ReasonSignature},
		"再见张三【北方】": {Signature: "北方"},
		"您好赌博【北方】": {Signature: "北方", Template: 1, Keyword: 1, Action: policy.Reject, Reason: message.ReasonKeyword},
	} {
		if got := check(text); got != want {
			t.Errorf("%s: %+v, want %+v", text, got, want)
		}
	}
	if got := s.Stat(7, message.ReasonSignature); got != "SIGN:1" {
		t.Errorf("stat %q", got)
	}
	if closed := s.Policy.Closed(1, "北方"); len(closed) != 1 || closed[0] != 11 {
		t.Errorf("closed channels %v, want 11", closed)
	}
	if got := s.Table.Carrier(13800138000); got != routing.Mobile {
		t.Errorf("a rule that has ended applies: %s", got)
	}
	if got := s.Table.Carrier(13900138000); got != routing.Unicom {
		t.Errorf("a rule that has not ended does not apply: %s", got)
	}
}

func TestRoute(t *testing.T) {
	t.Parallel()
	pool := database(
		t,
		`INSERT INTO enterprise VALUES (1, 1, 'east')`,
		`INSERT INTO application (id, enterprise_id, price, sp_id, secret, name) VALUES (7, 1, 325, '900001', 's', 'a')`,
		`INSERT INTO signature (id, enterprise_id, text, status) VALUES (1, 1, '北方', 2)`,
		`INSERT INTO signature_number VALUES (1, '10691', 2)`,
		`INSERT INTO supplier_account VALUES (3, 32, 4, 16, 500, '127.0.0.1:7891', '800001', 'key', 'north')`,
		`INSERT INTO channel (id, account_id, access_number, name, signature_required, enabled) VALUES
			(10, 3, '10690', 'primary', true, true), (11, 3, '10691', 'backup', true, true), (12, 3, '10692', 'off', false, false), (13, 3, '10693', 'strict', true, true)`,
		`INSERT INTO channel_group VALUES (20, 'g'), (21, 'all off'), (22, 'strict')`,
		`INSERT INTO channel_group_member VALUES (20, 10, 0, 1), (20, 11, 1, 1), (20, 12, 0, 1), (21, 12, 0, 1), (22, 13, 0, 1)`,
		`INSERT INTO application_route VALUES (7, 1, 20), (7, 2, 21), (7, 3, 22)`,
	)
	s, err := settings.Load(t.Context(), pool)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name    string
		app     int32
		carrier routing.Carrier
		text    string
		tried   []int32
		channel int32
		reason  message.Reason
	}{
		{"the backup takes the signature", 7, routing.Mobile, "北方", nil, 11, message.NoReason},
		{"tried", 7, routing.Mobile, "北方", []int32{11}, 0, message.ReasonSignature},
		{"nobody takes the signature", 7, routing.Mobile, "南方", nil, 0, message.ReasonSignature},
		{"nobody takes it, one group", 7, routing.Telecom, "北方", nil, 0, message.ReasonSignature},
		{"all disabled", 7, routing.Unicom, "北方", nil, 0, message.ReasonRoute},
		{"no group for the carrier", 7, routing.Broadnet, "北方", nil, 0, message.ReasonRoute},
		{"no carrier", 7, routing.Unknown, "北方", nil, 0, message.ReasonRoute},
		{"no application", 8, routing.Mobile, "北方", nil, 0, message.ReasonRoute},
		{"all tried", 7, routing.Telecom, "北方", []int32{13}, 0, message.ReasonRoute},
	} {
		got, reason := s.Route(c.app, c.carrier, c.text, 13800138000, c.tried)
		if got.ChannelID != c.channel || reason != c.reason {
			t.Errorf("%s: channel %d, %q; want %d, %q", c.name, got.ChannelID, reason, c.channel, c.reason)
		}
	}
	if got := s.Serving(7, 13800138000, routing.Unknown); len(got) != 2 || got[0].ChannelID != 10 || got[1].ChannelID != 11 {
		t.Errorf("serving: %+v", got)
	}
	if got := s.Serving(7, 13800138000, routing.Telecom); len(got) != 1 || got[0].ChannelID != 13 {
		t.Errorf("serving a ported number: %+v", got)
	}
	if got := s.Serving(9, 13800138000, routing.Unknown); got != nil {
		t.Errorf("serving nobody: %+v", got)
	}
}
