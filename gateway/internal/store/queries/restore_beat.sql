-- Answers nothing in quarantine.
UPDATE installation SET beat = beat + 1 WHERE quarantined_at IS NULL RETURNING beat
