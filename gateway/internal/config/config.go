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
	Admin      Admin      `yaml:"admin"`
	Log        Log        `yaml:"log"`
	Shutdown   Shutdown   `yaml:"shutdown"`
}

// Node is the identity of this process.
type Node struct {
	Name        string        `yaml:"name"`         // for people; default host name
	GatewayCode uint32        `yaml:"gateway_code"` // base of the 22-bit gateway code of our Msg_Ids; node number is added; 0..4194048
	Lease       time.Duration `yaml:"lease"`        // node lease; renewed at a third of it; 2s..60s
}

// Postgres is the truth.
type Postgres struct {
	URL            string        `yaml:"url"`
	AcquireTimeout time.Duration `yaml:"acquire_timeout"` // waiting for a connection of a pool
	Pools          Pools         `yaml:"pools"`
}

// Pools is the number of connections per role: exhausting one must not stop another.
type Pools struct {
	Inbox      int32 `yaml:"inbox"`
	Workflow   int32 `yaml:"workflow"`
	Outbox     int32 `yaml:"outbox"` // dispatch barrier and pulls
	Callback   int32 `yaml:"callback"`
	Settlement int32 `yaml:"settlement"`
	Delivery   int32 `yaml:"delivery"`
	Admin      int32 `yaml:"admin"`
}

// Redis is the fast wire; URL wins over Host and Port. REDIS_HOST and REDIS_PORT alone are enough.
type Redis struct {
	URL      string        `yaml:"url"`
	Host     string        `yaml:"host"`
	Port     int           `yaml:"port"`
	Password string        `yaml:"password"`
	DB       int           `yaml:"db"`
	Timeout  time.Duration `yaml:"timeout"` // dial, read and write
}

// Inbound is the customer-facing CMPP server.
type Inbound struct {
	Listen             string        `yaml:"listen"`
	MaxConnections     int           `yaml:"max_connections"`
	MaxUnauthenticated int           `yaml:"max_unauthenticated"` // connections that have not logged in
	LoginTimeout       time.Duration `yaml:"login_timeout"`
	IdleInterval       time.Duration `yaml:"idle_interval"`    // C
	ResponseTimeout    time.Duration `yaml:"response_timeout"` // T
	Tries              int           `yaml:"tries"`            // N
	WriteTimeout       time.Duration `yaml:"write_timeout"`
	BatchMax           int           `yaml:"batch_max"`       // rows per inbox commit
	QueueMax           int           `yaml:"queue_max"`       // SUBMITs waiting for their commit; beyond: result 8
	CommitDeadline     time.Duration `yaml:"commit_deadline"` // an ambiguous commit is repeated this long, then the connection is closed without an answer
	BacklogMax         int           `yaml:"backlog_max"`     // inbox rows of one application; beyond: result 8
}

// Workflow turns inbox rows into submits, per enterprise, in micro-batches.
type Workflow struct {
	Workers        int           `yaml:"workers"`
	BatchMax       int           `yaml:"batch_max"`        // inbox rows
	BatchTarget    int           `yaml:"batch_target"`     // collect up to this many while busy; ≤ batch_max
	BatchWeightMax int           `yaml:"batch_weight_max"` // PDUs
	BatchMaxWait   time.Duration `yaml:"batch_max_wait"`   // ≤ 50ms
	Poll           time.Duration `yaml:"poll"`             // when no wake arrives
	Validity       time.Duration `yaml:"validity"`         // of a message without ValId_Time
}

// Outbox carries commands to the edges: hints on Redis Streams and the pull from PostgreSQL.
type Outbox struct {
	HintEntriesMax int           `yaml:"hint_entries_max"` // entries on one channel's stream; beyond: no hint, the pull finds the rows
	Pull           time.Duration `yaml:"pull"`             // at least this often per channel, ≤ 1s
	PullMax        int           `yaml:"pull_max"`
	RedisSlow      time.Duration `yaml:"redis_slow"`    // a Redis slower than this is pulled around at once
	SweepEvery     time.Duration `yaml:"sweep_every"`   // expiry, reroute and overdue sweeps
	RerouteAfter   time.Duration `yaml:"reroute_after"` // all links of a channel down this long
}

// Supplier is the channel pools.
type Supplier struct {
	AllowRemote    bool          `yaml:"allow_remote"` // false refuses suppliers that are not on loopback (harness runs)
	DialTimeout    time.Duration `yaml:"dial_timeout"`
	IdleInterval   time.Duration `yaml:"idle_interval"`
	Tries          int           `yaml:"tries"`
	WriteTimeout   time.Duration `yaml:"write_timeout"`
	ReconnectMin   time.Duration `yaml:"reconnect_min"`
	ReconnectMax   time.Duration `yaml:"reconnect_max"`
	BarrierBatch   int           `yaml:"barrier_batch_max"`
	BarrierCollect time.Duration `yaml:"barrier_collect"` // 1–2 ms when the last batch was neither 1 nor full
	BarrierRate    int           `yaml:"barrier_rate"`    // rows/s, 0 = no limit: proves that capacity is measured behind the barrier
	LeaseTime      time.Duration `yaml:"lease_time"`      // channel lease
}

// Event is the edge's event queues and batch sender.
type Event struct {
	BatchMax    int           `yaml:"batch_max"`    // ≤ 100
	BatchTarget int           `yaml:"batch_target"` // 50
	BatchWait   time.Duration `yaml:"batch_wait"`   // 10ms
	BytesMax    int           `yaml:"bytes_max"`    // 1 MB
	RetainMax   int           `yaml:"retain_max"`   // unaccepted events + in-flight submits; at it the dispatcher stops and DELIVERs stay unanswered
	RetainBytes int           `yaml:"retain_bytes"`
	RetryMin    time.Duration `yaml:"retry_min"`
	RetryMax    time.Duration `yaml:"retry_max"`
	URL         string        `yaml:"url"`          // of the core's callback; empty = this process's own
	Timeout     time.Duration `yaml:"timeout"`      // of one request, longer than the server's deadline
	IdleTimeout time.Duration `yaml:"idle_timeout"` // of pooled connections, shorter than the server's
}

// Callback is the core's event endpoint.
type Callback struct {
	Listen           string        `yaml:"listen"`
	Token            string        `yaml:"token"`
	RequestDeadline  time.Duration `yaml:"request_deadline"`
	StatementTimeout time.Duration `yaml:"statement_timeout"`
	TransactionMax   int           `yaml:"transaction_max"` // events per transaction, 20..100
	IdleTimeout      time.Duration `yaml:"idle_timeout"`    // 120s
	HeaderTimeout    time.Duration `yaml:"header_timeout"`  // 125s
}

// Settlement matches receipts and moves states and money.
type Settlement struct {
	BatchMax     int           `yaml:"batch_max"`
	Poll         time.Duration `yaml:"poll"`
	ParkMax      time.Duration `yaml:"park_max"`      // 72h
	UnknownAfter time.Duration `yaml:"unknown_after"` // a parked receipt this old is tried against unknown submits; 60s
	ReceiptWait  time.Duration `yaml:"receipt_wait"`  // 72h
}

// Delivery offers receipts and uplinks to customers.
type Delivery struct {
	Lease         time.Duration `yaml:"lease"`     // 5s..120s
	Merge         time.Duration `yaml:"merge"`     // 25ms trailing
	MergeCap      time.Duration `yaml:"merge_cap"` // 250ms
	Sweep         time.Duration `yaml:"sweep"`     // 5s
	AttemptsMax   int           `yaml:"attempts_max"`
	AckTimeout    time.Duration `yaml:"ack_timeout"`
	AcceptHold    time.Duration `yaml:"accept_hold"`    // only the accepting node claims before this age of the SUBMIT; 60s
	DeliverWindow int           `yaml:"deliver_window"` // per customer connection
	KeepMax       time.Duration `yaml:"keep_max"`       // 72h → dead
}

// Admin is health, metrics and the admin API.
type Admin struct {
	Listen string `yaml:"listen"`
	Token  string `yaml:"token"`
}

// Log is the process log.
type Log struct {
	Level  string `yaml:"level"`  // debug|info|warn|error
	Format string `yaml:"format"` // text|json
}

// Shutdown bounds each step of a graceful stop.
type Shutdown struct {
	Drain time.Duration `yaml:"drain"`
	Total time.Duration `yaml:"total"`
}
