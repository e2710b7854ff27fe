-- CREATE, DROP and TRUNCATE of databases and tables, ADD and DROP COLUMN, rows before and after each.
CREATE DATABASE ba;
CREATE DATABASE bb;
USE ba;
CREATE TABLE t (id INT PRIMARY KEY, a INT, s VARCHAR(20) DEFAULT 'x');
INSERT INTO t VALUES (1,1,'one'),(2,2,'two'),(3,3,NULL);
-- old rows take the default; NOT NULL without a default takes the type's zero
ALTER TABLE t ADD COLUMN d INT DEFAULT 7;
INSERT INTO t VALUES (4,4,'four',44);
ALTER TABLE t ADD COLUMN n INT NOT NULL;
ALTER TABLE t ADD COLUMN ns VARCHAR(10) NOT NULL, ADD COLUMN nb VARBINARY(4) NOT NULL;
INSERT INTO t VALUES (5,5,'five',55,5,'n5',x'00ff');
UPDATE t SET a = 10 WHERE id = 1;
ALTER TABLE t ADD COLUMN f INT FIRST;
ALTER TABLE t ADD COLUMN g VARCHAR(10) DEFAULT 'g' AFTER id, ADD COLUMN h BIGINT UNSIGNED DEFAULT 18446744073709551615 AFTER a;
INSERT INTO t (f,id,g,a,n,ns,nb) VALUES (6,6,'gg',6,66,'','');
DELETE FROM t WHERE id = 2;
ALTER TABLE t DROP COLUMN a;
ALTER TABLE t DROP COLUMN d, DROP COLUMN ns, ADD COLUMN z INT DEFAULT -1;
INSERT INTO t (f,id,g,n,nb) VALUES (7,7,NULL,77,'b');
UPDATE t SET s = 'last' WHERE id IN (3,7);
-- a column that goes and comes back with another type
ALTER TABLE t DROP COLUMN z;
ALTER TABLE t ADD COLUMN z VARCHAR(5) DEFAULT 'zz';
UPDATE t SET z = 'new' WHERE id = 6;
-- TRUNCATE between rows of the same keys
CREATE TABLE tr (id INT PRIMARY KEY, v INT);
INSERT INTO tr VALUES (1,1),(2,2),(3,3);
TRUNCATE TABLE tr;
INSERT INTO tr VALUES (2,20),(4,40);
TRUNCATE TABLE tr;
TRUNCATE TABLE tr;
INSERT INTO tr VALUES (3,300);
-- DROP and CREATE of the same name with another shape and another key
CREATE TABLE again (id INT PRIMARY KEY, v INT);
INSERT INTO again VALUES (1,1),(2,2);
UPDATE again SET v = 22 WHERE id = 2;
DROP TABLE again;
CREATE TABLE again (name VARCHAR(10) NOT NULL, id INT NOT NULL, v DECIMAL(10,3), PRIMARY KEY (name, id));
INSERT INTO again VALUES ('one',1,1.5),('two',2,NULL);
UPDATE again SET id = 3 WHERE name = 'one';
DROP TABLE again;
CREATE TABLE again (id INT PRIMARY KEY, v VARCHAR(10));
INSERT INTO again VALUES (1,'third');
-- two tables in one DROP, one that is never written
CREATE TABLE gone1 (id INT PRIMARY KEY);
CREATE TABLE gone2 (id INT PRIMARY KEY);
INSERT INTO gone1 VALUES (1);
DROP TABLE gone1, gone2;
CREATE TABLE untouched (id INT PRIMARY KEY, v DATE);
-- a database that goes with its tables and comes back
CREATE TABLE bb.t (id INT PRIMARY KEY, v INT);
CREATE TABLE bb.u (id INT PRIMARY KEY, v INT);
INSERT INTO bb.t VALUES (1,1),(2,2);
INSERT INTO bb.u VALUES (1,1);
DROP DATABASE bb;
CREATE DATABASE bb;
CREATE TABLE bb.t (id INT PRIMARY KEY, v INT, w INT);
INSERT INTO bb.t VALUES (1,5,6);
CREATE DATABASE bc;
CREATE TABLE bc.t (id INT PRIMARY KEY);
INSERT INTO bc.t VALUES (1);
DROP DATABASE bc;
-- one transaction over two tables, between two DDLs
BEGIN; INSERT INTO tr VALUES (9,9); INSERT INTO bb.t VALUES (9,9,9); DELETE FROM again WHERE id = 1; COMMIT;
ALTER TABLE bb.t DROP COLUMN v;
