-- What application $1 pays now; as workflow_terms reads it.
SELECT coalesce(h.price, a.price), coalesce(h.charge_on, a.charge_on), coalesce(h.refund_on, a.refund_on), coalesce(h.unit_rule, a.unit_rule)
  FROM application a
  LEFT JOIN LATERAL (
    SELECT p.price, p.charge_on, p.refund_on, p.unit_rule FROM price_history p
     WHERE p.app_id = a.id AND p.since <= statement_timestamp() ORDER BY p.since DESC, p.price_version DESC LIMIT 1) h ON true
 WHERE a.id = $1::int
