"""For programs: a changefeed's windows as Spark DataFrames."""
