"""Sample generators: lines as they are, tokens, tokens with arrays beside them."""

from .common import NOOPSampleGenerator, SampleData, SampleGeneratorInterface, noop_sample_processing
from .schema import ArraySpec, SampleSchema

__all__ = [
    "ArraySpec",
    "NOOPSampleGenerator",
    "SampleData",
    "SampleGeneratorInterface",
    "SampleSchema",
    "noop_sample_processing",
]
