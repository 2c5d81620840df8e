SELECT id, available, credit FROM account ORDER BY id
