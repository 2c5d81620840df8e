-- Which numbers want no such message: by everybody's list, their enterprise's, or for the signature. A scalar sub-select:
-- EXISTS would be turned into a join that may walk the whole list. $1 phones, $2 enterprises, $3 signatures, $4 marketing
SELECT u.phone, u.enterprise_id, u.signature, u.marketing
  FROM unnest($1::bigint[], $2::int[], $3::text[], $4::boolean[]) AS u (phone, enterprise_id, signature, marketing)
 WHERE (SELECT 1 FROM opt_out o
         WHERE o.phone = u.phone AND (o.enterprise_id = 0 OR o.enterprise_id = u.enterprise_id) AND (o.signature = '' OR o.signature = u.signature)
           AND o.reversed_at IS NULL AND (u.marketing OR NOT o.marketing_only) LIMIT 1) IS NOT NULL
