"""The demo: `reconciler demo` shows the whole thing at work on one machine, with everything embedded.

`environment` provides servers, directories and the reconciler's process; `live_upstream` writes to Kafka what TiCDC
would write; `invariant_reader` reads the target as any application would; `compare` judges the end; `view` tells it;
`run` is the script.
"""
