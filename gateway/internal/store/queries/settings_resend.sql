-- Applications whose messages are sent again after a failed receipt, and how often.
SELECT id, resend_failed FROM application WHERE resend_failed > 0
