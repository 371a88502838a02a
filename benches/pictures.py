"""u: JPEGs decoded and cropped at random, and what an empty function costs a sample."""

import importlib.util
import io
import time

import numpy as np
from PIL import Image, ImageDraw, ImageFilter

import windrow as wr
from measure import DATA, forever, in_turns, processor_secs, table, warm

PICTURES, CROP, BATCH = 600, 224, 32


def drawn(number):
    """A picture as a camera makes them: smooth ground, edges, a little noise; the same for the same number."""
    rng = np.random.default_rng([64, number])
    width, height = int(rng.integers(400, 641)), int(rng.integers(300, 481))
    ground = rng.integers(0, 256, (6, 8, 3), np.uint8)
    picture = Image.fromarray(ground).resize((width, height), Image.Resampling.BICUBIC)
    draw = ImageDraw.Draw(picture)
    for _ in range(30):
        x, y, across, up = (int(rng.integers(n)) for n in (width, height, width // 3, height // 3))
        colour = tuple(int(c) for c in rng.integers(0, 256, 3))
        shape = draw.ellipse if rng.random() < 0.5 else draw.rectangle
        shape((x, y, x + across + 1, y + up + 1), fill=colour)
    pixels = np.asarray(picture.filter(ImageFilter.GaussianBlur(1)), np.int16)
    noisy = pixels + rng.integers(-6, 7, pixels.shape, np.int16)
    file = io.BytesIO()
    Image.fromarray(noisy.clip(0, 255).astype(np.uint8)).save(file, "JPEG", quality=90)
    return file.getvalue()


def pictures(n=PICTURES):
    """The JPEGs one file each, and the same as a data set."""
    files, whole = DATA / f"pictures-{n}", DATA / f"pictures-{n}-mds"
    if not whole.exists():
        files.mkdir(exist_ok=True)
        for number in range(n):
            (files / f"{number:05}.jpg").write_bytes(drawn(number))
        paths = sorted(files.glob("*.jpg"))
        wr.write(whole, ({"image": path.read_bytes(), "label": number % 10} for number, path in enumerate(paths)), to="mds")
    for path in [*files.iterdir(), *whole.iterdir()]:
        warm(path)
    return sorted(files.glob("*.jpg")), whole


def crop(image, rng):
    """A random crop of a JPEG's bytes."""
    picture = Image.open(io.BytesIO(image)).convert("RGB")
    left, top = int(rng.integers(picture.width - CROP + 1)), int(rng.integers(picture.height - CROP + 1))
    return np.array(picture.crop((left, top, left + CROP, top + CROP)))


def mapped(row, rng):
    return crop(row["image"], rng)


class Files:
    """The files as a data set of torch's, whose workers decode."""

    def __init__(self, paths):
        self.paths = paths

    def __len__(self):
        return len(self.paths)

    def __getitem__(self, i):
        return crop(self.paths[i].read_bytes(), np.random.default_rng())


def bench_u(passes, seconds, n=PICTURES):
    paths, whole = pictures(n)
    spent = {}

    def rate(name, batches):
        """Images a second, the first batches left out; keeps the processor time of an image."""
        batches = iter(batches)
        for _ in range(3):
            assert len(next(batches)) == BATCH
        count, start, processor = 0, time.perf_counter(), processor_secs()
        elapsed = 0.0
        while elapsed < seconds:
            count += len(next(batches))
            elapsed = time.perf_counter() - start
        spent.setdefault(name, []).append(1000 * (processor_secs() - processor) / count)
        return count / elapsed

    def by_map(name):
        with wr.Loader(wr.open(whole).rows(), batch_size=BATCH, num_threads=2, map=mapped) as loader:
            return rate(name, loader.stream())

    def by_collate(name):
        rng = np.random.default_rng(0)

        def collate(rows):
            return np.stack([mapped(row, rng) for row in rows])

        with wr.Loader(wr.open(whole).rows(), batch_size=BATCH, num_threads=2, collate=collate) as loader:
            return rate(name, loader.stream())

    def data_loader(name):
        import torch

        loader = torch.utils.data.DataLoader(
            Files(paths), batch_size=BATCH, shuffle=True, num_workers=2, drop_last=True, persistent_workers=True
        )
        return rate(name, forever(lambda: loader))

    def spdl(name):
        from spdl.pipeline import PipelineBuilder

        rng = np.random.default_rng(0)

        def shuffled():
            while True:
                yield from rng.permutation(len(paths))

        def decode(number):
            return crop(paths[number].read_bytes(), np.random.default_rng())

        builder = PipelineBuilder().add_source(shuffled()).pipe(decode, concurrency=2)
        pipeline = builder.aggregate(BATCH).pipe(np.stack).add_sink(4).build(num_threads=2)
        with pipeline.auto_stop():
            return rate(name, pipeline)

    measures = {
        "windrow, map=, 2 threads": by_map,
        "windrow, collate=, in the calling thread": by_collate,
        "DataLoader, 2 workers": data_loader,
    }
    if importlib.util.find_spec("spdl"):
        measures["SPDL, 2 threads"] = spdl
    else:
        print("\n(u) SPDL is not installed: python -m pip install -r benches/requirements.txt")
    found = in_turns(passes, **{name: lambda name=name, measure=measure: measure(name) for name, measure in measures.items()})
    base = "windrow, collate=, in the calling thread"
    result = {"images": table(f"(u) images/s, {n} JPEGs, crops of {CROP}, batch {BATCH}", found, base)}
    result["processor ms an image"] = {name: sorted(times)[len(times) // 2] for name, times in spent.items()}
    for name, milliseconds in result["processor ms an image"].items():
        print(f"  {name:<44} {milliseconds:>14.2f} ms of processor time an image")

    def samples(**options):
        labels = wr.open(whole).rows(["label"])
        with wr.Loader(labels, batch_size=BATCH, num_threads=1, **options) as loader:
            batches, count, elapsed = loader.stream(), 0, 0.0
            next(batches)
            start = time.perf_counter()
            while elapsed < seconds:
                count += len(next(batches))
                elapsed = time.perf_counter() - start
        return 1e6 * elapsed / count

    micros = in_turns(passes, **{"no function": samples, "an empty function": lambda: samples(map=lambda row, rng: 0)})
    result["microseconds a sample"] = micros
    costs = micros["an empty function"] - micros["no function"]
    print(f"  an empty function costs {costs:.1f} µs a sample ({micros['no function']:.1f} without one), 1 thread")
    return result
