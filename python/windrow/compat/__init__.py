"""One module per original, with its own names, arguments, shapes and values: change the import line, keep the code.

- `windrow.compat.data_forager` – byte-offset index over JSONL and token samples; the module paths of 0.2.0
- `windrow.compat.dia` – pre-encoded audio, its configuration and its batches; needs torch
- `windrow.compat.foundation_ts` – windows over series and folders of them; needs torch
- `windrow.compat.oxidizr` – raw u32 token streams cut by a cursor
- `windrow.compat.seqax` – shuffled batches of flat-tokens, any step at once

Their defects are not kept: what would have been silently wrong is an error that names the file and the place.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from windrow.compat import data_forager, dia, foundation_ts, oxidizr, seqax

__all__ = ["data_forager", "dia", "foundation_ts", "oxidizr", "seqax"]


def __getattr__(name: str) -> Any:
    # Imported when they are first used: two of them need torch.
    if name in __all__:
        import importlib

        return importlib.import_module(f"windrow.compat.{name}")
    raise AttributeError(f"module 'windrow.compat' has no attribute {name!r}")
