-- The databases that will be replicated are not known here, and DDL makes and drops them. KILL of a former leader's
-- connection needs no right: it belongs to the same user.
GRANT ALL PRIVILEGES ON *.* TO 'reconciler'@'%';
