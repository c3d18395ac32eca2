-- The versions in the snapshot :seq of the ARCs with some numbers.
SELECT numbered.id, numbered.path, version.seq_from
  FROM json_each(:numbers) AS number
  JOIN document AS numbered ON numbered.id = number.value
  JOIN document ON document.path = numbered.path
  JOIN version ON version.document = document.id AND version.seq_from <= :seq AND version.seq_until > :seq
