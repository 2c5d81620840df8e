SELECT app_id, carrier, group_id FROM application_route
