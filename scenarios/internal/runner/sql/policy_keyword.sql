INSERT INTO keyword (word, action) VALUES ($1, 1)
