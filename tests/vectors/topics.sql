-- A topic per table; two of the topics end in mid-stream: their table is renamed away, or dropped.
CREATE DATABASE tp;
USE tp;
CREATE TABLE a (id INT PRIMARY KEY, v INT);
CREATE TABLE b (id INT PRIMARY KEY, v INT);
CREATE TABLE c (id INT PRIMARY KEY, v INT);
INSERT INTO a VALUES (1,1),(2,2),(3,3);
INSERT INTO b VALUES (1,1),(2,2);
INSERT INTO c VALUES (1,1);
BEGIN; UPDATE a SET v = 10 WHERE id = 1; UPDATE b SET v = 20 WHERE id = 1; INSERT INTO c VALUES (2,2); COMMIT;
UPDATE a SET id = 9 WHERE id = 2;
RENAME TABLE a TO a2;
INSERT INTO a2 VALUES (4,4),(5,5);
UPDATE a2 SET v = 30 WHERE id = 3;
DELETE FROM c WHERE id = 1;
DROP TABLE b;
INSERT INTO a2 VALUES (6,6);
INSERT INTO c VALUES (3,3);
-- a dropped table's topic comes back to life
CREATE TABLE b (id INT PRIMARY KEY, w VARCHAR(5));
INSERT INTO b VALUES (1,'new');
UPDATE a2 SET v = v + 1;
DROP TABLE c;
INSERT INTO b VALUES (2,'two');
UPDATE b SET w = 'last' WHERE id = 1;
