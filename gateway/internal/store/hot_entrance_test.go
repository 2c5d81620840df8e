package store_test

import "cmppgateway/gateway/internal/store"

var (
	_ = isHot("channel backlog", store.InboundBacklogChannel, `'{1,2}', '{10,10}'`, "submit_outbox.channel_id")
	_ = isHot("login events", store.LoginEventAdd,
		`'{a}','{192.0.2.1}','{0}','{""}','{now}','{now}','{1}','{1}','{48}','{0102030405}','{""}', 1`)
)
