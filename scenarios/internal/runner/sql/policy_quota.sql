UPDATE enterprise_policy SET daily_quota = $1
