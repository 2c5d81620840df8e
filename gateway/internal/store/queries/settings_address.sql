SELECT app_id, network FROM application_address ORDER BY app_id, network
