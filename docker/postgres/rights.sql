-- The least rights of docs/security.md. psql reads the password from the secret itself: no command line shows it.
\set password `cat /run/secrets/postgres-reconciler`
CREATE USER reconciler PASSWORD :'password';
GRANT CREATE, TEMPORARY ON DATABASE shop TO reconciler;
