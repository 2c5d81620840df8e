package store_test

import "cmppgateway/gateway/internal/store"

const anyMessages = "first_id(-1), first_id(1)"

var (
	_ = isHot("workflow use", store.WorkflowUse, "'{1,2}'", "daily_use.enterprise_id")
	_ = isHot("workflow recent", store.WorkflowRecent, "'{1,2}', '{13800000001,13800000002}', '{10,10}', '{86400,86400}', "+anyMessages, "message.phone")
	_ = isHot("workflow repeated", store.WorkflowRepeated, "'{1,2}', '{13800000001,13800000002}', '{x,y}', '{60,60}', "+anyMessages, "message.phone")
	_ = isHot("workflow opt-out", store.WorkflowOptOut, "'{13800000001,13800000002}', '{0,1,2}'", "opt_out.phone")
	_ = isHot("workflow override", store.WorkflowOverride, "'{13800000001,13800000002}'", "number_override.phone")
	_ = isHot("workflow held", store.WorkflowHeld, "'{1,2}', 100", "review_hold.enterprise_id")
)

// What an operator imports is large before it is analysed.
func init() { //nolint:gochecknoinits // the fill is a list that each room extends
	fill = append(fill,
		`INSERT INTO opt_out (phone) SELECT 13800000000 + i FROM generate_series(1, 100000) i`,
		`INSERT INTO number_override (phone, carrier, source) SELECT 13800000000 + i, 1, 1 FROM generate_series(1, 100000) i`,
		`INSERT INTO review_hold (message_id, enterprise_id, app_id, keyword_id, held_at, expires_at) SELECT i, i % 5, 1, 1, now(), now() FROM generate_series(1, 100000) i`,
		`INSERT INTO daily_use (enterprise_id, day, app_id, messages) SELECT i % 100, current_date - i / 1000, i % 1000, 1 FROM generate_series(1, 100000) i ON CONFLICT DO NOTHING`,
	)
}
