SELECT snapshot.commitTag AS commitTag
  FROM snapshot JOIN domain ON domain.id = snapshot.domain
 WHERE domain.name = :name;
