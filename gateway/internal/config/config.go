package config

import "time"

// Config is everything the gateway reads at start. Default gives every value; a YAML file and the environment override
// it; Validate reports every fault with its path. Settings that change while running (enterprises, applications,
// channels …) live in PostgreSQL and are not here.
type Config struct {
	Node       Node       `yaml:"node"`
	Postgres   Postgres   `yaml:"postgres"`
	Redis      Redis      `yaml:"redis"`
	Inbound    Inbound    `yaml:"inbound"`
	Workflow   Workflow   `yaml:"workflow"`
	Outbox     Outbox     `yaml:"outbox"`
	Supplier   Supplier   `yaml:"supplier"`
	Event      Event      `yaml:"event"`
	Callback   Callback   `yaml:"callback"`
	Settlement Settlement `yaml:"settlement"`
	Delivery   Delivery   `yaml:"delivery"`
	Uplink     Uplink     `yaml:"uplink"`
	Admin      Admin      `yaml:"admin"`
	Log        Log        `yaml:"log"`
	Shutdown   Shutdown   `yaml:"shutdown"`
}

// Node is the identity of this process.
type Node struct {
	Name        string        `yaml:"name" allow:"any"`                // for people; default host name
	GatewayCode uint32        `yaml:"gateway_code" allow:"0..4194048"` // base of the 22-bit gateway code of our Msg_Ids; node number is added; 0..4194048
	Lease       time.Duration `yaml:"lease" allow:"2s..60s"`           // node lease; renewed at a third of it; 2s..60s
}

// Postgres is the truth.
type Postgres struct {
	URL            string        `yaml:"url" allow:"any" secret:"true"`
	AcquireTimeout time.Duration `yaml:"acquire_timeout" allow:"100ms..60s"` // waiting for a connection of a pool
	Pools          Pools         `yaml:"pools"`
}

// Pools is the number of connections per role: exhausting one must not stop another.
type Pools struct {
	Inbox      int32 `yaml:"inbox" allow:"1..64"`
	Workflow   int32 `yaml:"workflow" allow:"1..64"`
	Outbox     int32 `yaml:"outbox" allow:"1..64"` // dispatch barrier and pulls
	Callback   int32 `yaml:"callback" allow:"1..64"`
	Settlement int32 `yaml:"settlement" allow:"1..64"`
	Delivery   int32 `yaml:"delivery" allow:"1..64"`
	Admin      int32 `yaml:"admin" allow:"1..64"`
}

// Redis is the fast wire; URL wins over Host and Port. REDIS_HOST and REDIS_PORT alone are enough.
type Redis struct {
	URL      string        `yaml:"url" allow:"any" secret:"true"`
	Host     string        `yaml:"host" allow:"any"`
	Port     int           `yaml:"port" allow:"1..65535"`
	Password string        `yaml:"password" allow:"any" secret:"true"`
	DB       int           `yaml:"db" allow:"0..15"`
	Timeout  time.Duration `yaml:"timeout" allow:"50ms..30s"` // dial, read and write
}

// Inbound is the customer-facing CMPP server.
type Inbound struct {
	Listen             string        `yaml:"listen" allow:"host:port"`
	TLSListen          string        `yaml:"tls_listen" allow:"any"` // host:port of a second listener that speaks TLS; empty = none
	TLSCert            string        `yaml:"tls_cert" allow:"any"`   // PEM file, the chain after the certificate; read again when it changes
	TLSKey             string        `yaml:"tls_key" allow:"any"`    // PEM file
	MaxConnections     int           `yaml:"max_connections" allow:"1..20000"`
	MaxUnauthenticated int           `yaml:"max_unauthenticated" allow:"1..20000"` // connections that have not logged in
	LoginTimeout       time.Duration `yaml:"login_timeout" allow:"100ms..60s"`
	ProbeTimeout       time.Duration `yaml:"probe_timeout" allow:"100ms..10s"`  // an account at its limit: a link silent this long after an ACTIVE_TEST gives its place to a new login
	LoginFailures      int           `yaml:"login_failures" allow:"1..1000"`    // refused logins of one address and account without a wait
	LoginBackoff       time.Duration `yaml:"login_backoff" allow:"1ms..10m"`    // wait after the next one, doubled by each further one
	LoginBackoffMax    time.Duration `yaml:"login_backoff_max" allow:"1ms..1h"` // longest wait
	IdleInterval       time.Duration `yaml:"idle_interval" allow:"1s..10m"`     // C
	ResponseTimeout    time.Duration `yaml:"response_timeout" allow:"1s..5m"`   // T
	Tries              int           `yaml:"tries" allow:"1..10"`               // N
	WriteTimeout       time.Duration `yaml:"write_timeout" allow:"100ms..60s"`
	BatchMax           int           `yaml:"batch_max" allow:"1..4096"`           // rows per inbox commit
	QueueMax           int           `yaml:"queue_max" allow:"1..1000000"`        // SUBMITs waiting for their commit; beyond: result 8
	CommitDeadline     time.Duration `yaml:"commit_deadline" allow:"1s..5m"`      // an ambiguous commit is repeated this long, then the connection is closed without an answer
	BacklogMax         int           `yaml:"backlog_max" allow:"1..100000000"`    // inbox rows of one application; beyond: result 8
	SegmentSetsMax     int           `yaml:"segment_sets_max" allow:"1..1000000"` // long messages of one application that are not complete; a further one: result 8
}

// Workflow turns inbox rows into submits, per enterprise, in micro-batches.
type Workflow struct {
	Workers        int           `yaml:"workers" allow:"1..64"`
	BatchMax       int           `yaml:"batch_max" allow:"1..4096"`         // inbox rows
	BatchTarget    int           `yaml:"batch_target" allow:"1..4096"`      // collect up to this many while busy; ≤ batch_max
	BatchWeightMax int           `yaml:"batch_weight_max" allow:"1..16384"` // PDUs
	BatchMaxWait   time.Duration `yaml:"batch_max_wait" allow:"0s..50ms"`   // ≤ 50ms
	Poll           time.Duration `yaml:"poll" allow:"1ms..10s"`             // when no wake arrives
	Validity       time.Duration `yaml:"validity" allow:"1s..168h"`         // of a message without ValId_Time
	ReviewMax      int           `yaml:"review_max" allow:"0..1000000"`     // messages of one enterprise held for review; beyond: KEYWORD
	ReviewWait     time.Duration `yaml:"review_wait" allow:"1m..168h"`      // a hold that nobody decides ends EXPIRED
	SegmentExpiry  time.Duration `yaml:"segment_expiry" allow:"1s..1h"`     // a long message that is not complete after this: failed receipts
	SegmentDoubt   time.Duration `yaml:"segment_doubt" allow:"100ms..1m"`   // a complete one waits this long when a segment may be a late repetition; ≤ segment_expiry
	SegmentWindow  time.Duration `yaml:"segment_window" allow:"1s..1h"`     // after which the same segment is no repetition of a sent message; N·T
}

// Outbox carries commands to the edges: hints on Redis Streams and the pull from PostgreSQL.
type Outbox struct {
	HintEntriesMax  int           `yaml:"hint_entries_max" allow:"0..4096"` // entries on one channel's stream; beyond: no hint, the pull finds the rows
	Pull            time.Duration `yaml:"pull" allow:"1ms..1s"`             // at least this often per channel, ≤ 1s
	PullMax         int           `yaml:"pull_max" allow:"1..4096"`
	RedisSlow       time.Duration `yaml:"redis_slow" allow:"1ms..10s"`       // a Redis slower than this is pulled around at once
	SweepEvery      time.Duration `yaml:"sweep_every" allow:"10ms..1m"`      // expiry, reroute and overdue sweeps
	RerouteAfter    time.Duration `yaml:"reroute_after" allow:"100ms..10m"`  // all links of a channel down this long
	AgeVerification time.Duration `yaml:"age_verification" allow:"1s..168h"` // a command that waited longer ends EXPIRED, counted from its first time in the queue
	AgeNotification time.Duration `yaml:"age_notification" allow:"1s..168h"`
	AgeMarketing    time.Duration `yaml:"age_marketing" allow:"1s..168h"`
}

// Supplier is the channel pools.
type Supplier struct {
	AllowRemote    bool          `yaml:"allow_remote"` // false refuses suppliers that are not on loopback (harness runs)
	DialTimeout    time.Duration `yaml:"dial_timeout" allow:"100ms..60s"`
	IdleInterval   time.Duration `yaml:"idle_interval" allow:"1s..10m"`
	Tries          int           `yaml:"tries" allow:"1..10"`
	WriteTimeout   time.Duration `yaml:"write_timeout" allow:"100ms..60s"`
	ReconnectMin   time.Duration `yaml:"reconnect_min" allow:"10ms..1m"`
	ReconnectMax   time.Duration `yaml:"reconnect_max" allow:"100ms..10m"`
	BarrierBatch   int           `yaml:"barrier_batch_max" allow:"1..4096"`
	BarrierCollect time.Duration `yaml:"barrier_collect" allow:"0s..10ms"` // 1–2 ms when the last batch was neither 1 nor full
	BarrierRate    int           `yaml:"barrier_rate" allow:"0..1000000"`  // rows/s, 0 = no limit: proves that capacity is measured behind the barrier
	LeaseTime      time.Duration `yaml:"lease_time" allow:"1s..2m"`        // channel lease
}

// Event is the edge's event queues and batch sender.
type Event struct {
	BatchMax    int           `yaml:"batch_max" allow:"1..100"`        // ≤ 100
	BatchTarget int           `yaml:"batch_target" allow:"1..100"`     // 50
	BatchWait   time.Duration `yaml:"batch_wait" allow:"0s..1s"`       // 10ms
	BytesMax    int           `yaml:"bytes_max" allow:"1024..1048576"` // 1 MB
	RetainMax   int           `yaml:"retain_max" allow:"1..10000000"`  // unaccepted events + in-flight submits; at it the dispatcher stops and DELIVERs stay unanswered
	RetainBytes int           `yaml:"retain_bytes" allow:"1048576..17179869184"`
	RetryMin    time.Duration `yaml:"retry_min" allow:"1ms..10s"`
	RetryMax    time.Duration `yaml:"retry_max" allow:"10ms..5m"`
	URL         string        `yaml:"url" allow:"any"`              // of the core's callback; empty = this process's own
	Timeout     time.Duration `yaml:"timeout" allow:"100ms..2m"`    // of one request, longer than the server's deadline
	IdleTimeout time.Duration `yaml:"idle_timeout" allow:"1s..10m"` // of pooled connections, shorter than the server's
	Singles     int           `yaml:"singles" allow:"1..64"`        // single-event requests at once, of one queue
	TLSCA       string        `yaml:"tls_ca" allow:"any"`           // PEM file of who signed the core's certificate; empty = the system's
	TLSCert     string        `yaml:"tls_cert" allow:"any"`         // PEM file with which the edge proves itself
	TLSKey      string        `yaml:"tls_key" allow:"any"`
}

// Callback is the core's event endpoint.
type Callback struct {
	Listen           string        `yaml:"listen" allow:"host:port"`
	Token            string        `yaml:"token" allow:"any" secret:"true"`
	RequestDeadline  time.Duration `yaml:"request_deadline" allow:"100ms..2m"`
	StatementTimeout time.Duration `yaml:"statement_timeout" allow:"50ms..1m"`
	TransactionMax   int           `yaml:"transaction_max" allow:"20..100"` // events per transaction, 20..100
	IdleTimeout      time.Duration `yaml:"idle_timeout" allow:"1s..30m"`    // 120s
	HeaderTimeout    time.Duration `yaml:"header_timeout" allow:"1s..30m"`  // 125s
	TLSCert          string        `yaml:"tls_cert" allow:"any"`            // PEM file; empty = plain HTTP
	TLSKey           string        `yaml:"tls_key" allow:"any"`
	TLSClientCA      string        `yaml:"tls_client_ca" allow:"any"` // PEM file: only edges whose certificate it signed
}

// Settlement matches receipts and moves states and money.
type Settlement struct {
	BatchMax     int           `yaml:"batch_max" allow:"1..4096"`
	Poll         time.Duration `yaml:"poll" allow:"1ms..10s"`
	ParkMax      time.Duration `yaml:"park_max" allow:"1s..720h"`        // 72h
	UnknownAfter time.Duration `yaml:"unknown_after" allow:"1s..24h"`    // a parked receipt this old is tried against unknown submits; 60s
	ReceiptWait  time.Duration `yaml:"receipt_wait" allow:"1s..720h"`    // 72h
	ParkedMax    int           `yaml:"parked_max" allow:"100..10000000"` // receipts without a submit; at it, reports of the accounts that have most are not taken
	UnknownAlert time.Duration `yaml:"unknown_alert" allow:"1s..720h"`   // an unknown submit this old is counted as overdue; 72h
}

// Delivery offers receipts and uplinks to customers.
type Delivery struct {
	Lease         time.Duration `yaml:"lease" allow:"5s..120s"`   // 5s..120s
	Merge         time.Duration `yaml:"merge" allow:"0s..1s"`     // 25ms trailing
	MergeCap      time.Duration `yaml:"merge_cap" allow:"0s..5s"` // 250ms
	Sweep         time.Duration `yaml:"sweep" allow:"10ms..1m"`   // 5s
	AttemptsMax   int           `yaml:"attempts_max" allow:"1..100"`
	AckTimeout    time.Duration `yaml:"ack_timeout" allow:"100ms..2m"`
	AcceptHold    time.Duration `yaml:"accept_hold" allow:"1s..10m"`         // only the accepting node claims before this age of the SUBMIT; 60s
	DeliverWindow int           `yaml:"deliver_window" allow:"1..256"`       // per customer connection
	KeepMax       time.Duration `yaml:"keep_max" allow:"1s..720h"`           // 72h → dead
	BacklogMax    int           `yaml:"backlog_max" allow:"1000..100000000"` // of one application; beyond it the oldest → dead
}

// Uplink brings messages from phones to the customers whose numbers they were sent to.
type Uplink struct {
	BatchMax      int           `yaml:"batch_max" allow:"1..1000"`           // uplinks of one transaction
	Poll          time.Duration `yaml:"poll" allow:"10ms..1m"`               // when no wake arrives
	SegmentExpiry time.Duration `yaml:"segment_expiry" allow:"1s..1h"`       // a long uplink that is not complete after this goes on with what came
	SegmentDoubt  time.Duration `yaml:"segment_doubt" allow:"100ms..1m"`     // a complete one waits this long when a segment may be a late repetition; ≤ segment_expiry
	SegmentWindow time.Duration `yaml:"segment_window" allow:"1s..24h"`      // after which the same segment is no repetition
	SegmentsMax   int           `yaml:"segments_max" allow:"1..1000000"`     // segments that wait; beyond it they go on one by one
	SenderWindow  time.Duration `yaml:"sender_window" allow:"1h..720h"`      // how long a message decides whose an answer is, and with which signature
	KeyKeep       time.Duration `yaml:"key_keep" allow:"1h..720h"`           // how long a repetition is known as one
	Keep          time.Duration `yaml:"keep" allow:"24h..26280h"`            // of uplinks
	UnmatchedKeep time.Duration `yaml:"unmatched_keep" allow:"1h..8760h"`    // of those that are nobody's, on their list
	UnmatchedMax  int           `yaml:"unmatched_max" allow:"100..10000000"` // on the list; beyond it the oldest leave
}

// Admin is health, metrics and the admin API.
type Admin struct {
	Listen    string `yaml:"listen" allow:"host:port"`
	Token     string `yaml:"token" allow:"any" secret:"true"` // a token with role admin, also of the profiler
	TLSCert   string `yaml:"tls_cert" allow:"any"`            // PEM file, the chain after the certificate; read again at each handshake; empty = plain HTTP
	TLSKey    string `yaml:"tls_key" allow:"any"`             // PEM file
	PlainText bool   `yaml:"plain_text"`                      // allow plain HTTP beyond loopback: something in front speaks TLS
}

// Log is the process log.
type Log struct {
	Level  string `yaml:"level" allow:"debug|info|warn|error"` // debug|info|warn|error
	Format string `yaml:"format" allow:"text|json"`            // text|json
}

// Shutdown bounds each step of a graceful stop.
type Shutdown struct {
	Drain time.Duration `yaml:"drain" allow:"0s..10m"`
	Total time.Duration `yaml:"total" allow:"1s..20m"`
}
