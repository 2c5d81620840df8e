SELECT app_id, reason, stat FROM application_stat
