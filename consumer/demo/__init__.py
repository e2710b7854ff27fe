"""The demo: `reconciler demo` shows the whole thing at work on one machine, with everything embedded.

`stage` provides servers, directories and the reconciler's process; `feeding` writes to Kafka what TiCDC would write;
`looking` reads the target as any application would; `comparing` judges the end; `view` tells it; `play` is the script.
"""
