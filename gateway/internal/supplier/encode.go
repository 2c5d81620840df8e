package supplier

import (
	"strconv"
	"strings"

	"cmppgateway/gateway/cmpp"
	"cmppgateway/gateway/internal/outbox"
	"cmppgateway/gateway/internal/settings"
	"cmppgateway/gateway/sms"
)

const (
	srcMax     = 21 // octets of Src_Id
	wantReport = 1  // Registered_Delivery: settlement needs the report of every submit (CMPP 3.0 §8.5.3)
)

// SrcID is the Src_Id used upstream: the channel's access number and, where the channel appends them, the digits the
// customer wrote after its application's access number; 21 in all. A number under the channel's is used as it is, so that
// customers who share a channel can be told apart by what their phones answer to.
func SrcID(s *settings.Snapshot, ch *settings.Channel, app int32, customer []byte) string {
	src := ch.AccessNumber
	if ch.AppendExtension {
		extension := string(customer)
		if under, ok := strings.CutPrefix(extension, src); ok {
			extension = under
		} else if a := s.Applications[app]; a != nil {
			extension = strings.TrimPrefix(extension, a.AccessNumber)
		}
		if digits(extension) {
			src += extension
		}
	}
	return src[:min(len(src), srcMax)]
}

func digits(s string) bool {
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return false
		}
	}
	return true
}

// fill makes the SUBMIT of a command.
func fill(p *cmpp.Submit, dest []string, c *outbox.Command, s *settings.Snapshot, ch *settings.Channel, a *settings.SupplierAccount) {
	service := ch.ServiceID
	if service == "" {
		service = string(c.Service)
	}
	msgSrc := ch.MsgSrc
	if msgSrc == "" {
		msgSrc = a.SPID
	}
	content := c.Content
	if ch.Particulars.SignatureBy == settings.SignedBySupplier {
		first, last := c.Part <= 1 && c.PkNumber <= 1, c.Part >= c.Parts && c.PkNumber >= c.PkTotal
		content = unsigned(sms.Fmt(c.Fmt), uint8(c.UDHI), content, first, last)
	}
	dest[0] = strconv.FormatInt(c.Phone, 10)
	*p = cmpp.Submit{
		PkTotal: uint8(max(c.PkTotal, 1)), PkNumber: uint8(max(c.PkNumber, 1)), RegisteredDelivery: wantReport,
		ServiceID: service, FeeUserType: uint8(ch.Particulars.FeeUserType), FeeTerminalID: ch.Particulars.FeeTerminal, TPUDHI: uint8(c.UDHI), MsgFmt: uint8(c.Fmt), MsgSrc: msgSrc,
		FeeType: ch.FeeType, FeeCode: ch.FeeCode, SrcID: SrcID(s, ch, c.AppID, c.Src), DestTerminalID: dest, MsgContent: content,
	}
}
