INSERT INTO enterprise_policy (enterprise_id, freq_minute, freq_hour, freq_day, daily_quota) VALUES ($1, $2, $3, $4, $5)
ON CONFLICT (enterprise_id) DO UPDATE SET freq_minute = $2, freq_hour = $3, freq_day = $4, daily_quota = $5
