package manage

import (
	"cmppgateway/gateway/internal/message"
	"cmppgateway/gateway/internal/routing"
	"cmppgateway/gateway/sms"
)

// The words of the enumerations and the numbers stored for them.
var (
	statuses = enum{words: []Word{{"active", 1}, {"disabled", 2}}, onlyShown: []Word{{"deleted", deleted}}}
	versions = enum{words: []Word{{"any", 0}, {"2.0", 0x20}, {"2.1", 0x21}, {"3.0", 0x30}}}
	wires    = enum{words: versions.words[1:]}
	units    = enum{words: []Word{{sms.RuleCN7067.String(), int64(sms.RuleCN7067)}, {sms.RuleGSM160153.String(), int64(sms.RuleGSM160153)}}}
	charges  = enum{words: []Word{{"accept", int64(message.ChargeOnAccept)}, {"deliver", int64(message.ChargeOnDeliver)}}}
	refunds  = enum{words: []Word{{"never", int64(message.RefundNever)}, {"final_failed_receipt", int64(message.RefundOnFailedReceipt)}}}
	lanes    = enum{words: []Word{{"verification", int64(message.Verification)}, {"notification", int64(message.Notification)}, {"marketing", int64(message.Marketing)}}}
	carriers = enum{words: []Word{
		{routing.Mobile.String(), int64(routing.Mobile)},
		{routing.Unicom.String(), int64(routing.Unicom)},
		{routing.Telecom.String(), int64(routing.Telecom)},
		{routing.Broadnet.String(), int64(routing.Broadnet)},
	}}
	classes = enum{words: []Word{
		{"retry-other", int64(message.RetryOther)},
		{"retry-later", int64(message.RetryLater)},
		{"reroute-carrier", int64(message.RerouteCarrier)},
		{"terminal", int64(message.Terminal)},
	}}
	decisions      = enum{words: []Word{{"pending", 1}, {"approved", 2}, {"rejected", 3}}}
	signModes      = enum{words: []Word{{"off", 0}, {"required", 1}}}
	signPlaces     = enum{words: []Word{{"front", 1}, {"end", 2}, {"either", 3}}}
	templModes     = enum{words: []Word{{"off", 0}, {"match", 1}, {"force", 2}}}
	actions        = enum{words: []Word{{"reject", 1}, {"hold", 2}, {"alert", 3}}}
	optSources     = enum{onlyShown: []Word{{"list", 1}, {"uplink", 2}}}
	uplinkOutcomes = enum{onlyShown: []Word{{"waits", 0}, {"delivered", 1}, {"joined", 2}, {"incomplete", 3}, {"repeated", 4}, {"unmatched", 5}, {"discarded", 6}}}
	uplinkReasons  = enum{onlyShown: []Word{{"no_application", 1}, {"ambiguous", 2}, {"failed", 3}}}
	numSources     = enum{onlyShown: []Word{{"import", 1}, {"learned", 2}, {"operator", 3}}}
	feePayers      = enum{words: []Word{{"recipient", 0}, {"originator", 1}, {"sp", 2}, {"fee_terminal", 3}}}
	signers        = enum{words: []Word{{"text", 0}, {"supplier", 1}}}
	stopScopes     = enum{words: []Word{{"platform", 1}, {"enterprise", 2}, {"application", 3}, {"channel", 4}}}
	stopModes      = enum{words: []Word{{"hold", 1}, {"release", 2}}}

	reportFormats  = enum{words: []Word{{"by-length", 0}, {"21-octets", 1}, {"32-octets", 2}}}
	reportIDs      = enum{words: []Word{{"as-submitted", 0}, {"reversed", 1}}}
	textFormats    = enum{words: []Word{{"customer", -1}, {"ascii", 0}, {"ucs2", 8}, {"gb18030", 15}}}
	segmentReports = enum{words: []Word{{"all", 0}, {"first", 1}, {"last", 2}}}
	eventModes     = enum{words: []Word{{"batch", 0}, {"shadow", 1}, {"single", 2}}}

	reasons    = enum{words: reasonWords()}
	entryKinds = enum{onlyShown: []Word{{"top_up", 1}, {"freeze", 2}, {"charge", 3}, {"release", 4}, {"refund", 5}}}
)

// deleted is the status of an enterprise or application that only the past still speaks of.
const deleted = 3

func reasonWords() (words []Word) {
	for r := message.ReasonSignature; r <= message.ReasonSystem; r++ {
		words = append(words, Word{r.String(), int64(r)})
	}
	return words
}

// phone is a number as people write it, stored in the normal form of package sms.
type phone struct{}

func (phone) parse(v any) (any, string) {
	const allowed = "a number of 11 digits, or 13 of a machine, with or without +86"
	s, ok := v.(string)
	if n, whole := whole(v); whole {
		s, ok = itoa(n), true
	}
	if !ok || len(s) > 32 {
		return nil, allowed
	}
	n, err := sms.NormalizeNumber(s)
	if err != nil {
		return nil, allowed
	}
	return int64(n), ""
}

func (phone) show(stored any) any {
	n, _ := whole(stored)
	return itoa(n)
}

func (phone) Schema() map[string]any {
	return map[string]any{"type": "string", "description": "a number of 11 digits, or 13 of a machine, with or without +86"}
}
