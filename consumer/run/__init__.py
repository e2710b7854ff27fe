"""Running one changefeed: lead or stand by, round after round, a clean end; and what a person sees of it."""
