-- The inbox rows of an application that a CANCEL may be about: the SUBMIT, and segments. The enterprise is locked. $1 enterprise, $2 application, $3 Msg_Id
SELECT id, 0::bigint, udhi, ends, segments IS NOT NULL, dest, src, content, msg_id = $3 OR coalesce(segments @> jsonb_build_object('pieces', jsonb_build_array(jsonb_build_object('msg_id', $3::bigint))), false)
  FROM inbox WHERE enterprise_id = $1 AND app_id = $2
   AND (msg_id = $3 OR udhi <> 0 OR segments IS NOT NULL)
