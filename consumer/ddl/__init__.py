"""DDL messages: which count, whether they are executed, and what became of them."""
