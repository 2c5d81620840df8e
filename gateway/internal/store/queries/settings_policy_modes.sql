SELECT app_id, signature_mode, signature_place, template_mode, daily_quota, duplicate_seconds, quiet_from, quiet_until FROM application_policy
