-- Values of secondary unique keys move between rows, in one transaction and over several.
CREATE DATABASE us;
USE us;
CREATE TABLE s (id INT PRIMARY KEY, u INT NOT NULL, n VARCHAR(10), v INT, UNIQUE KEY ku (u), UNIQUE KEY kn (n));
CREATE TABLE w (id INT PRIMARY KEY NONCLUSTERED, x INT, y INT, UNIQUE KEY kxy (x, y));
CREATE TABLE k (no VARCHAR(10) NOT NULL, other INT NOT NULL, v INT, UNIQUE KEY kno (no), UNIQUE KEY kother (other, no));
INSERT INTO s VALUES (1,10,'a',1),(2,20,'b',2),(3,30,'c',3),(4,40,NULL,4);
INSERT INTO w VALUES (1,1,1),(2,1,2),(3,2,NULL),(4,2,NULL);
INSERT INTO k VALUES ('a',1,1),('b',2,2),('c',3,3);
BEGIN; UPDATE s SET u = 99 WHERE id = 1; UPDATE s SET u = 10 WHERE id = 2; UPDATE s SET u = 20 WHERE id = 1; COMMIT;
BEGIN; UPDATE s SET n = NULL WHERE id = 1; UPDATE s SET n = 'a' WHERE id = 3; UPDATE s SET n = 'c' WHERE id = 1; COMMIT;
-- a ring of three
BEGIN; UPDATE s SET u = 0 WHERE id = 1; UPDATE s SET u = 20 WHERE id = 2; UPDATE s SET u = 10 WHERE id = 3; UPDATE s SET u = 30 WHERE id = 1; COMMIT;
-- freed by one transaction, taken by the next
UPDATE s SET u = 77 WHERE id = 4;
UPDATE s SET u = 40 WHERE id = 3;
UPDATE s SET u = 10 WHERE id = 4;
-- freed by a DELETE, taken by an INSERT; and back
DELETE FROM s WHERE id = 2;
INSERT INTO s VALUES (5,20,'b',5);
BEGIN; DELETE FROM s WHERE id = 5; INSERT INTO s VALUES (2,20,'b',22); COMMIT;
REPLACE INTO s VALUES (6,20,'c',6);
-- composite unique key
BEGIN; UPDATE w SET y = 9 WHERE id = 1; UPDATE w SET y = 1 WHERE id = 2; UPDATE w SET y = 2 WHERE id = 1; COMMIT;
BEGIN; UPDATE w SET id = 7 WHERE id = 1; UPDATE w SET id = 1 WHERE id = 2; UPDATE w SET id = 2 WHERE id = 7; COMMIT;
UPDATE w SET x = 1, y = 5 WHERE id = 3;
-- no primary key: handle key and another unique key move
BEGIN; UPDATE k SET no = 'z' WHERE no = 'a'; UPDATE k SET no = 'a' WHERE no = 'b'; UPDATE k SET no = 'b' WHERE no = 'z'; COMMIT;
UPDATE k SET other = other + 1 ORDER BY other DESC;
