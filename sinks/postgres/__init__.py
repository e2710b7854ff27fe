"""PostgreSQL 13 and later over psycopg: upstream's database `d` is schema `d`, rows come by COPY, DDL is transactional.

Progress lies in schema `ticdc_reconciler`, helper tables are temporary; `public` and system schemas are never read or
written.
"""
