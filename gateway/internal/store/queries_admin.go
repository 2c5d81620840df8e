package store

import _ "embed" // SQL

// Statements of the admin API and of `gateway check`.
var (
	//go:embed queries/admin_durability.sql
	AdminDurability string
)
