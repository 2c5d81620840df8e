package settings

import (
	"cmppgateway/gateway/cmpp"
	"cmppgateway/gateway/internal/message"
	"cmppgateway/gateway/internal/policy"
	"cmppgateway/gateway/internal/routing"
	"cmppgateway/gateway/sms"
)

// Status of an enterprise or application.
type Status int16

// Statuses.
const (
	Active Status = iota + 1
	Disabled
)

// Enterprise is a customer: it owns applications and one account of the same id.
type Enterprise struct {
	ID     int32
	Status Status
	Name   string
}

// Application is what a customer logs in as.
type Application struct {
	ID             int32
	EnterpriseID   int32
	Status         Status
	Version        cmpp.Version // pin; 0 = as the client says
	Price          int64        // 1/10,000 yuan a unit
	PriceVersion   int32
	UnitRule       sms.UnitRule
	ChargeOn       message.ChargeOn
	RefundOn       message.RefundOn
	Lane           message.Lane
	MaxConnections int
	WindowSize     int
	SPID           string
	Secret         string
	AccessNumber   string // prefix a customer's Src_Id must have; "" = any
	Name           string

	Routes map[routing.Carrier]int32 `db:"-"` // group of channels by carrier

	ResendFailed int16 `db:"-"` // more submits after a failed receipt, 0..2; see loadResends
}

// SupplierAccount is a contract with a supplier: connections, window and rate are limits over all its channels.
type SupplierAccount struct {
	ID             int32
	Version        cmpp.Version
	MaxConnections int
	MaxWindow      int
	MaxTPS         int    // 0 = none
	Addr           string // host:port
	SPID           string
	Secret         string
	Name           string
}

// Channel is one way to a supplier. Its values are as stored and may be out of range: whoever starts the channel refuses
// it then.
type Channel struct {
	ID                 int32
	AccountID          int32
	Enabled            bool
	Carrier            routing.Carrier
	DesiredConnections int
	WindowSize         int
	RateLimit          int // TPS, 0 = the account's
	WarmupSeconds      int
	DrainSeconds       int
	ResponseSeconds    int
	CooldownSeconds    int
	AccessNumber       string // Src_Id base
	AppendExtension    bool   // append the customer's extension digits, 21 in all
	ServiceID          string
	MsgSrc             string // "" = the account's SPID
	FeeType            string
	FeeCode            string
	Name               string

	Cutting // see loadCutting

	Particulars Particulars `db:"-"` // see loadSupplier
}

// Snapshot is all settings at one version. It is shared and read-only.
type Snapshot struct {
	Version      int64
	Enterprises  map[int32]Enterprise
	Applications map[int32]*Application
	BySPID       map[string]*Application
	Accounts     map[int32]*SupplierAccount
	Channels     map[int32]*Channel
	Groups       map[int32]*routing.Group
	Table        *routing.Table
	Policy       *policy.Set
	Faults       []error // rows of the policy lists that cannot be used
	Limits       Limits
	Stops        Stops
	Refused      map[int32][]Fault // enabled channels that may not be opened, with every reason
	Health       Health            // follows the channels, at the same version

	classes  map[classKey]message.ResultClass
	callback map[string]CallbackMode
}

type classKey struct {
	channel int32
	code    int32
}

// Codes that exist from CMPP 2.1 on; a supplier of 2.0 that uses one of them means something of its own.
const firstNewCode, lastNewCode = 9, 13

// Class says what follows a SUBMIT_RESP with Result code on channel: the channel's own class, else the one for all
// channels, else Terminal. A code that the channel's version does not know has only the channel's own class.
func (s *Snapshot) Class(channel int32, code uint32) message.ResultClass {
	if c, ok := s.classes[classKey{channel, int32(code)}]; ok {
		return c
	}
	if ch := s.Channels[channel]; ch != nil && code >= firstNewCode && code <= lastNewCode {
		if a := s.Accounts[ch.AccountID]; a != nil && a.Version == cmpp.V20 {
			return message.Terminal
		}
	}
	if c, ok := s.classes[classKey{0, int32(code)}]; ok {
		return c
	}
	return message.Terminal
}
