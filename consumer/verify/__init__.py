"""`reconciler verify`: compares target and upstream at C, and names what differs.

plan       which tables, as what their columns are compared, into which chunks a table is cut     pure
narrow     sums of a chunk -> of its buckets -> rows of the buckets that differ
sides      a snapshot of each side: the target's holds C, the upstream's is at C
compare    chunks, several at once, and what is kept of them
run        one verification from beginning to end
resume_file  which chunks are done, for a run that goes on
report     what people and programs get to read; repair: the SQL that repairs the target
replay     the topics in the place of an upstream
"""
