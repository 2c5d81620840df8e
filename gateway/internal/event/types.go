package event

import (
	"encoding/json"
	"hash/fnv"
	"time"
)

// Kinds of events (capacity-plan §6.1).
const (
	TypeSubmitResult        = "submit_result"         // SubmitResult of a message with one part
	TypeSubmitSegmentResult = "submit_segment_result" // SubmitResult of one part of several; the core derives the message
	TypeReceipt             = "receipt_intake"        // Receipt
	TypeUplink              = "uplink"                // Uplink
	TypeDeadLetter          = "dead_letter"           // DeadLetter
)

// States of a SubmitResult.
const (
	Accepted = "accepted" // Result is 0, SupplierMsgID is set
	Rejected = "rejected" // Result is the supplier's raw code
	Unknown  = "unknown"  // possibly sent, no answer (architecture P3)
)

// Event is one fact offered to the core. ID is stable over offers: a hash of the business key for results, an id of the
// node (package message) for the others.
type Event struct {
	ID      int64           `json:"eventId,string"`
	Type    string          `json:"type"`
	Payload json.RawMessage `json:"payload"`
}

// SubmitResult is the outcome of one submit. A submit may have two: unknown, then the late answer.
type SubmitResult struct {
	SubmitID      int64     `json:"submitId,string"`
	MessageID     int64     `json:"messageId,string"`
	ChannelID     int32     `json:"channelId"`
	AccountID     int32     `json:"accountId"` // supplier account
	State         string    `json:"state"`     // Accepted, Rejected, Unknown
	Result        uint32    `json:"result"`
	SupplierMsgID uint64    `json:"supplierMsgId,string"`
	Node          int16     `json:"node"`
	Conn          int32     `json:"conn"` // connection number inside the process, for people
	Attempt       int16     `json:"attempt"`
	Part          int16     `json:"part"`
	Parts         int16     `json:"parts"`
	Phone         int64     `json:"phone"`
	Src           string    `json:"src"` // Src_Id used upstream
	DispatchedAt  time.Time `json:"dispatchedAt"`
	RespAt        time.Time `json:"respAt"` // zero when State is Unknown
}

// Receipt is a supplier's status report.
type Receipt struct {
	AccountID     int32     `json:"accountId"`
	ChannelID     int32     `json:"channelId"` // the channel of the link it came on
	SupplierMsgID uint64    `json:"supplierMsgId,string"`
	Phone         int64     `json:"phone"` // normalised; 0 = the text is not a number
	Stat          string    `json:"stat"`
	SubmitTime    string    `json:"submitTime"` // YYMMDDHHMM, Asia/Shanghai, as sent
	DoneTime      string    `json:"doneTime"`
	Dest          string    `json:"dest"` // recipient as sent
	Src           string    `json:"src"`  // Dest_Id of the DELIVER: the Src_Id used upstream
	At            time.Time `json:"at"`
}

// Uplink is a message from a phone.
type Uplink struct {
	AccountID     int32     `json:"accountId"`
	ChannelID     int32     `json:"channelId"`
	SupplierMsgID uint64    `json:"supplierMsgId,string"` // of the DELIVER
	Phone         string    `json:"phone"`
	Dest          string    `json:"dest"`
	Fmt           int16     `json:"fmt"`
	UDHI          int16     `json:"udhi"`
	Content       []byte    `json:"content"`
	At            time.Time `json:"at"`
}

// DeadLetter is something a supplier sent that cannot become any other event; the core stores it as it is.
type DeadLetter struct {
	AccountID int32     `json:"accountId"`
	ChannelID int32     `json:"channelId"`
	Kind      string    `json:"kind"`
	Reason    string    `json:"reason"`
	Raw       []byte    `json:"raw"`
	At        time.Time `json:"at"`
}

// Limits of one batch request (capacity-plan §6.2).
const (
	MaxEvents = 100
	MaxBytes  = 1 << 20
)

// BatchRequest is the body of POST /api/gateway/events/batch. A shadow request is judged as any other, applied and taken
// back: its answers are what the core would have said (capacity-plan §7).
type BatchRequest struct {
	BatchID           string    `json:"batchId"`
	GatewayInstanceID string    `json:"gatewayInstanceId"`
	CreatedAt         time.Time `json:"createdAt"`
	Shadow            bool      `json:"shadow,omitempty"`
	Events            []Event   `json:"events"`
}

// BatchResponse answers a BatchRequest event by event.
type BatchResponse struct {
	BatchID string   `json:"batchId"`
	Results []Result `json:"results"`
}

// Result is the core's answer for one event, and the whole answer of a single-event endpoint. ErrorCode is one of callback's closed list.
type Result struct {
	EventID   int64  `json:"eventId,string"`
	Accepted  bool   `json:"accepted"`
	Retryable bool   `json:"retryable,omitempty"`
	ErrorCode string `json:"errorCode,omitempty"`
}

// ResultID is the id of a submit's result: a function of the submit, the state and the supplier's Msg_Id, so that the same
// fact has the same id whoever offers it, and a late answer another one than the unknown before it (data §1.14).
func ResultID(submitID int64, state string, supplierMsgID uint64) int64 {
	h := fnv.New64a()
	var b [16]byte
	for i := range 8 {
		b[i], b[8+i] = byte(submitID>>(8*i)), byte(supplierMsgID>>(8*i))
	}
	_, _ = h.Write(b[:])
	_, _ = h.Write([]byte(state))
	return int64(h.Sum64() >> 1) // ids are positive
}
