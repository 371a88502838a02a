"""Datasets over an index: JSON records, token samples, token samples with arrays beside them."""
