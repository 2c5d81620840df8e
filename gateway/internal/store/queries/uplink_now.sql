-- The time of the transaction, and the words that opt out.
SELECT now(), ARRAY(SELECT word FROM opt_out_word)
