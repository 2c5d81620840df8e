UPDATE enterprise SET status = $2 WHERE id = $1
