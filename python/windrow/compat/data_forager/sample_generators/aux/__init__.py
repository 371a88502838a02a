"""Arrays beside the tokens, such as loss masks."""

from .common import AuxDataGenerator, Part
from .loss_mask import LossMaskGenerator

__all__ = ["AuxDataGenerator", "LossMaskGenerator", "Part"]
