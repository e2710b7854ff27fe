"""`reconciler verify`: planning and narrowing against models, every type against a real TiDB, repair, resuming."""
