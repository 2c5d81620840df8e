SELECT channel_id, code, class FROM result_class
