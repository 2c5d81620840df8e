package config

import "time"

// Default is the shipped configuration.
func Default() Config {
	return Config{
		Node:     Node{GatewayCode: 1000, Lease: 6 * time.Second},
		Postgres: Postgres{AcquireTimeout: 5 * time.Second, Pools: Pools{Inbox: 3, Workflow: 4, Outbox: 4, Callback: 4, Settlement: 3, Delivery: 3, Admin: 3}},
		Redis:    Redis{Host: "127.0.0.1", Port: 6379, Timeout: 2 * time.Second},
		Inbound: Inbound{
			Listen: "127.0.0.1:7890", MaxConnections: 2000, MaxUnauthenticated: 200, LoginTimeout: 5 * time.Second,
			ProbeTimeout: 2 * time.Second, LoginFailures: 5, LoginBackoff: time.Second, LoginBackoffMax: time.Minute,
			IdleInterval: 60 * time.Second, ResponseTimeout: 60 * time.Second, Tries: 3, WriteTimeout: 10 * time.Second,
			BatchMax: 256, QueueMax: 8192, CommitDeadline: 50 * time.Second, BacklogMax: 100_000, SegmentSetsMax: 1000,
		},
		Workflow: Workflow{
			Workers: 2, BatchMax: 256, BatchTarget: 64, BatchWeightMax: 512, BatchMaxWait: 5 * time.Millisecond,
			Poll: 100 * time.Millisecond, Validity: 24 * time.Hour, ReviewMax: 10_000, ReviewWait: 24 * time.Hour,
			SegmentExpiry: 5 * time.Minute, SegmentDoubt: 5 * time.Second, SegmentWindow: 3 * time.Minute,
		},
		Outbox: Outbox{
			HintEntriesMax: 32, Pull: time.Second, PullMax: 512, RedisSlow: 200 * time.Millisecond, SweepEvery: time.Second, RerouteAfter: 10 * time.Second,
			AgeVerification: time.Minute, AgeNotification: 10 * time.Minute, AgeMarketing: 4 * time.Hour,
		},
		Supplier: Supplier{
			AllowRemote: true, DialTimeout: 5 * time.Second, IdleInterval: 30 * time.Second, Tries: 3, WriteTimeout: 5 * time.Second,
			ReconnectMin: 500 * time.Millisecond, ReconnectMax: 30 * time.Second, BarrierBatch: 512, BarrierCollect: time.Millisecond, LeaseTime: 10 * time.Second,
		},
		Event: Event{
			BatchMax: 100, BatchTarget: 50, BatchWait: 10 * time.Millisecond, BytesMax: 1 << 20, RetainMax: 50_000, RetainBytes: 64 << 20,
			RetryMin: 50 * time.Millisecond, RetryMax: 10 * time.Second, Timeout: 10 * time.Second, IdleTimeout: 60 * time.Second, Singles: 8,
		},
		Callback: Callback{
			Listen: "127.0.0.1:8090", RequestDeadline: 8 * time.Second, StatementTimeout: 5 * time.Second, TransactionMax: 100,
			IdleTimeout: 120 * time.Second, HeaderTimeout: 125 * time.Second,
		},
		Settlement: Settlement{BatchMax: 256, Poll: 100 * time.Millisecond, ParkMax: 72 * time.Hour, UnknownAfter: time.Minute, ReceiptWait: 72 * time.Hour, ParkedMax: 100_000, UnknownAlert: 72 * time.Hour},
		Delivery: Delivery{
			Lease: 30 * time.Second, Merge: 25 * time.Millisecond, MergeCap: 250 * time.Millisecond, Sweep: 5 * time.Second, AttemptsMax: 8,
			AckTimeout: 20 * time.Second, AcceptHold: time.Minute, DeliverWindow: 32, KeepMax: 72 * time.Hour, BacklogMax: 1_000_000,
		},
		Uplink: Uplink{
			BatchMax: 200, Poll: time.Second, SegmentExpiry: 5 * time.Minute, SegmentDoubt: 5 * time.Second, SegmentWindow: 10 * time.Minute, SegmentsMax: 10_000,
			SenderWindow: 72 * time.Hour, KeyKeep: 72 * time.Hour, Keep: 180 * 24 * time.Hour, UnmatchedKeep: 30 * 24 * time.Hour, UnmatchedMax: 100_000,
		},
		Admin:    Admin{Listen: "127.0.0.1:8091"},
		Log:      Log{Level: "info", Format: "text"},
		Shutdown: Shutdown{Drain: 20 * time.Second, Total: 40 * time.Second},
	}
}
