UPDATE application_policy SET signature_mode = CASE WHEN $2 >= 0 THEN $2 ELSE signature_mode END, template_mode = CASE WHEN $3 >= 0 THEN $3 ELSE template_mode END
 WHERE app_id = $1
