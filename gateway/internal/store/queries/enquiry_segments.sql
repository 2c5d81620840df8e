-- The segments of an application that wait. $1 application, $2 Msg_Id
SELECT id, set_id, udhi, 0::smallint, false, dest, src, content, msg_id = $2 FROM segment_wait WHERE app_id = $1
