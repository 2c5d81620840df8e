-- Price, status and policy as of this transaction: its commit order is the boundary of every change (data §1.17). A price with a
-- time from which it holds counts from that time on; an application without a history has the price in its own row.
SELECT a.id, a.enterprise_id, a.status = 1, e.status = 1, coalesce(h.price, a.price), coalesce(h.price_version, a.price_version), coalesce(h.unit_rule, a.unit_rule),
       coalesce(h.charge_on, a.charge_on), coalesce(h.refund_on, a.refund_on), a.lane
  FROM application a JOIN enterprise e ON e.id = a.enterprise_id
  LEFT JOIN LATERAL (
    SELECT p.price, p.price_version, p.unit_rule, p.charge_on, p.refund_on FROM price_history p
     WHERE p.app_id = a.id AND p.since <= statement_timestamp() ORDER BY p.since DESC, p.price_version DESC LIMIT 1) h ON true
 WHERE a.enterprise_id = ANY($1::int[])
