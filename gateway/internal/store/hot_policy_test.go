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
	_ = isHot("review take", store.ReviewTake, "'{1,2}'", "review_hold.message_id")
	_ = isHot("review due", store.ReviewDue, "200", "review_hold.expires_at")
)
