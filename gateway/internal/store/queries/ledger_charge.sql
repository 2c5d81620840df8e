-- A charge moves no balance: frozen becomes charged. $1 id, $2 account, $3 n, $4 amount
INSERT INTO account_entry (id, account_id, kind, n, amount) VALUES ($1, $2, 3, $3, $4)
