-- Ported numbers. $1 phones
SELECT phone, carrier FROM number_override WHERE phone = ANY($1::bigint[])
