"""Other programs on the same load, each in the form in which it is fastest: side by side with ours in one run."""
