SELECT version FROM settings_version
