"""An operator's commands: check, status, progress, tail, decisions about DDLs and quarantined messages."""
