"""Comparing tables: digests, forms in which values are compared, SQL that repairs."""
