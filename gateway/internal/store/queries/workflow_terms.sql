-- Price, status and policy as of this transaction: its commit order is the boundary of every change (data §1.17).
SELECT a.id, a.enterprise_id, a.status = 1, e.status = 1, a.price, a.price_version, a.unit_rule, a.charge_on, a.refund_on, a.lane
  FROM application a JOIN enterprise e ON e.id = a.enterprise_id
 WHERE a.enterprise_id = ANY($1::int[])
