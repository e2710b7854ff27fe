"""What TiCDC's storage sink writes: its names, its files, and how tasks read them."""
