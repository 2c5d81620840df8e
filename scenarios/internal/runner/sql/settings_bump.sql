UPDATE settings_version SET version = version + 1
