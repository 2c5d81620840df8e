package store

import _ "embed"

// Statements that write the settings tables; each touches a row only when it changes something.
var (
	//go:embed queries/seed_enterprise.sql
	SeedEnterprise string
	//go:embed queries/seed_application.sql
	SeedApplication string
	//go:embed queries/seed_price_history.sql
	SeedPriceHistory string
	//go:embed queries/seed_supplier.sql
	SeedSupplier string
	//go:embed queries/seed_channel.sql
	SeedChannel string
	//go:embed queries/seed_group.sql
	SeedGroup string
	//go:embed queries/seed_member.sql
	SeedMember string
	//go:embed queries/seed_member_drop.sql
	SeedMemberDrop string
	//go:embed queries/seed_route.sql
	SeedRoute string
	//go:embed queries/seed_prefix.sql
	SeedPrefix string
	//go:embed queries/seed_class.sql
	SeedClass string
	//go:embed queries/settings_bump.sql
	SettingsBump string
)
