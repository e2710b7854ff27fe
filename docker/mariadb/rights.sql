-- The least rights of docs/security.md, on every database: those that will be replicated are not known here, and DDL
-- makes and drops them. KILL of a former leader's connection needs no right: it belongs to the same user.
GRANT SELECT, INSERT, UPDATE, DELETE, CREATE, DROP, ALTER, INDEX, REFERENCES, CREATE VIEW, SHOW VIEW,
  CREATE TEMPORARY TABLES ON *.* TO 'reconciler'@'%';
