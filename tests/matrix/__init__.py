"""The matrix: every column type as key, every operation, every way of making the table, on every target.

`python -m tests.matrix --seed 1 --count 500 --targets sqlite,mariadb,tidb,postgres` plays random cases. A case is one
table and a seeded story of windows: inserts, updates, deletes, changed keys, swaps of the primary key and of a second
unique one, messages sent again. The key's values are neighbours that only an exact comparison tells apart. After each
window the target is read without the project's code and compared with a dict that was kept beside it.

A target may refuse a row of a table that was made by hand (TargetError that names the table); a row that is wrong,
lost or too many is a finding, and so is a refusal by a table that the changefeed made itself.
"""
