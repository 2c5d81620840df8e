SELECT enterprise_id, freq_minute, freq_hour, freq_day, daily_quota FROM enterprise_policy
