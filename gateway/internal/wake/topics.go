package wake

// Topics: who publishes after a COMMIT, and what its subscribers then look at. A channel's hints have topics of their own,
// see outbox.Topic.
const (
	Inbox      = "{wf}" // inbound: rows for the workflow
	Receipts   = "{st}" // callback: the log of receipts grew, for settlement
	Parked     = "{pk}" // whoever closed unknown submits: parked receipts that settlement is to try at once
	Uplinks    = "{up}" // callback: uplinks for package uplink
	Deliveries = "{dl}" // workflow, settlement and uplink: receipts and uplinks for customers
	Settings   = "{se}" // whoever raised settings_version: for the watcher of every process
)
