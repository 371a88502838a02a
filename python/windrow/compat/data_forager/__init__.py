"""data-forager's modules and names: a byte-offset index over JSONL, and token samples cut from it.

Change `data_forager.` to `windrow.compat.data_forager.` in the import lines. Index and sample files are the same bytes,
in both directions. What differs: nothing of an interrupted run is visible, a second run over the same inputs has
nothing to do, data that changed after it was indexed is an error, and reads are positional (a dataset works in forked
workers).
"""
