package policy

import (
	"cmppgateway/gateway/sms"
)

// Content is the text of one SUBMIT as the rules see it.
type Content struct {
	Text  string // decoded; empty for binary formats
	Units int    // billing units of the customer, at least 1
	Err   error  // the content is not what its format says
}

// ReadContent decodes a SUBMIT that stands alone. A segment of a long message is one unit.
func ReadContent(f sms.Fmt, udhi uint8, content []byte, rule sms.UnitRule) Content {
	c := Content{Units: 1}
	payload, segment := content, false
	if sms.HasHeader(udhi) {
		_, concat, _, rest, err := sms.SplitHeader(content)
		if err != nil {
			c.Err = err
			return c
		}
		payload, segment = rest, concat
	}
	switch f {
	case sms.FmtSIM, sms.FmtBinary:
		c.Units = sms.UnitsBinary(len(payload))
	case sms.FmtASCII, sms.FmtUCS2, sms.FmtGB18030:
		var err error
		if c.Text, err = sms.DecodeText(f, payload); err != nil {
			// A segment may end inside a character that the next one completes; alone it is one unit either way.
			if !segment {
				c.Err = err
				return c
			}
			c.Text = ""
		}
		c.Units = sms.Units(c.Text, rule)
	default:
		_, c.Err = sms.DecodeText(f, payload)
		return c
	}
	if segment {
		c.Units = 1
	}
	return c
}

// WholeText is the content of a long message whose segments were joined: the rules see all of it.
func WholeText(text string, rule sms.UnitRule) Content {
	return Content{Text: text, Units: sms.Units(text, rule)}
}
