SELECT id, enterprise_id, word, action FROM keyword WHERE enabled ORDER BY id
