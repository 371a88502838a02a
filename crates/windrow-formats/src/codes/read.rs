//! The codes of tracks by record number: borrowed from the map where they are stored frame by frame, gathered where they are not.

use windrow_core::array::reserve;
use windrow_core::format::Format;
use windrow_core::source::{Extras, FileInfo, Location, MOST_CODEBOOKS, Schema, Source, check_span};
use windrow_core::store::{Object, at_once};
use windrow_core::{DType, Decode, Element, Error, Kind, Lengths, Result, Span, Values};

use super::prompts::Prompts;
use super::pt::{Grid, TRANSPOSE};
use super::{Codes, Contradiction};
use windrow_core::format::data_files::DataFiles;

/// Codebooks that codecs have, those of one side.
const USUAL: [u64; 6] = [4, 8, 9, 12, 16, MOST_USUAL];
const MOST_USUAL: u64 = 32;
/// Those of the Descript Audio Codec, mono and stereo.
const DAC: [u64; 2] = [9, 18];

/// Tracks of one folder.
pub(super) struct Tracks {
    files: DataFiles,
    stems: Vec<String>,
    grids: Vec<Grid>,
    prompts: Prompts,
    schema: Schema,
    uniform: Option<u64>,
}

impl Tracks {
    /// Tracks whose grids were read; there is at least one.
    ///
    /// # Errors
    /// `Mismatch` naming two files whose widths cannot be one data set's.
    pub(super) fn new(
        files: DataFiles,
        stems: Vec<String>,
        grids: Vec<Grid>,
        prompts: Prompts,
        vocab_size: Option<u64>,
    ) -> Result<Tracks> {
        let widest =
            (0..grids.len()).max_by_key(|i| (grids[*i].channels, std::cmp::Reverse(*i))).unwrap_or(0);
        let channels = grids.get(widest).map_or(1, |grid| grid.channels);
        // One channel of a stereo pair is taken for both; anything else is a mistake that no reader should hide.
        let uniform = grids.first().map(|grid| grid.frames);
        let uniform = uniform.filter(|frames| grids.iter().all(|grid| grid.frames == *frames));
        if let Some(other) = grids.iter().position(|g| g.channels != channels && g.channels * 2 != channels) {
            let hint = match uniform {
                // Lengths of clips differ; numbers of codebooks do not.
                Some(frames) if USUAL.contains(&frames) => TRANSPOSE,
                Some(frames) if frames <= MOST_CODEBOOKS && frames < channels as u64 => TRANSPOSE,
                _ => "one data set has one number of codebooks, or half of it where a track is mono",
            };
            return Err(Error::mismatch(format!(
                "tracks of different widths: [{}, {channels}] in {}, [{}, {}] here",
                grids[widest].frames,
                files.name(widest),
                grids[other].frames,
                grids[other].channels
            ))
            .at(files.name(other))
            .hint(hint));
        }
        let first = grids.first().map_or(Element::little(DType::I64), |grid| grid.element);
        let alike = first.dtype.is_integer() && grids.iter().all(|grid| grid.element == first);
        let element = if alike { first } else { Element::little(DType::I64) };
        let schema = Schema { channels: Some(channels), vocab_size, ..Schema::numbers(element) };
        let tracks = Tracks { files, stems, grids, prompts, schema, uniform };
        if let Some(Contradiction { file, expected, found, .. }) = tracks.transposed() {
            windrow_core::warn!("{file}: found {found}, expected {expected}");
        }
        Ok(tracks)
    }

    // Tracks with one number of frames, fewer than codebooks, where no codec has that number of codebooks, or where codecs have the
    // number of frames as codebooks: their axes are swapped.
    fn transposed(&self) -> Option<Contradiction> {
        let (frames, channels) = (self.uniform?, self.schema.channels.unwrap_or(1) as u64);
        let is_unusual = channels > MOST_USUAL || USUAL.contains(&frames) && !DAC.contains(&channels);
        (0 < frames && frames < channels && is_unusual).then(|| Contradiction {
            file: self.files.name(0),
            record: Some(0),
            what: "axes".to_string(),
            expected: format!("frames of codebooks; {TRANSPOSE}"),
            found: format!("{frames} frames of {channels} codebooks in every track, which looks transposed"),
        })
    }

    fn grid(&self, record: u64) -> Result<(usize, &Grid)> {
        let found = usize::try_from(record).ok().and_then(|track| Some((track, self.grids.get(track)?)));
        found.ok_or_else(|| Error::out_of_range("record", record, self.len()))
    }

    fn checked(&self, span: Span) -> Result<(usize, &Grid)> {
        let (track, grid) = self.grid(span.record)?;
        check_span(span, grid.frames)?;
        Ok((track, grid))
    }

    // The file, whose size is still the one that its claims were compared with.
    fn object(&self, track: usize, grid: &Grid) -> Result<&dyn Object> {
        let object = self.files.get(track)?;
        if object.size() == grid.size {
            Ok(object)
        } else {
            Err(Error::new(
                Kind::Stale,
                format!("the file had {} bytes when it was opened, and has {} now", grid.size, object.size()),
            )
            .at(object.name())
            .hint("open the data set again"))
        }
    }

    fn is_borrowed(&self, grid: &Grid) -> bool {
        grid.in_order() && Some(grid.channels) == self.schema.channels && grid.element == self.schema.element
    }

    // Frame by frame, in the type and width of all tracks.
    fn gather(&self, track: usize, grid: &Grid, span: Span, out: &mut Vec<u8>) -> Result<()> {
        out.clear();
        if span.len == 0 {
            return Ok(());
        }
        let object = self.object(track, grid)?;
        let (width, last) = (grid.element.size(), span.start + span.len - 1);
        // All that the frames span: within the file, which was checked.
        let from = grid.place(span.start, 0);
        let to = grid.place(last, grid.channels - 1) + width as u64;
        let mut own = Vec::new();
        let bytes = object.read(from, at_once(to - from)?, &mut own)?;
        let widens = grid.element != self.schema.element;
        let twice = if Some(grid.channels) == self.schema.channels { 1 } else { 2 };
        let stored = if widens { self.schema.element.size() } else { width };
        reserve(out, span.len as usize * grid.channels * twice * stored)?;
        for frame in span.start..=last {
            let begun = out.len();
            for channel in 0..grid.channels {
                let at = (grid.place(frame, channel) - from) as usize;
                let code = &bytes[at..at + width];
                if widens {
                    out.extend_from_slice(&whole(code, grid.element).map_err(|found| {
                        Error::corrupt(format!("expected a code, found {found}"))
                            .at(object.name())
                            .record(span.record)
                            .byte(from + at as u64)
                            .hint("the tensor holds no codes but other numbers, such as latents: encode the track again")
                    })?)
                } else {
                    out.extend_from_slice(code)
                }
            }
            if twice == 2 {
                let end = out.len();
                out.extend_from_within(begun..end);
            }
        }
        Ok(())
    }

    /// What `metadata.json` says of the tracks, and is not so.
    pub(super) fn contradictions(&self) -> Vec<Contradiction> {
        let transposed = self.transposed().into_iter();
        let Some(metadata) = self.prompts.metadata() else { return transposed.collect() };
        let at = |record, what: String, expected: String, found: String| Contradiction {
            file: metadata.name().to_string(),
            record,
            what,
            expected,
            found,
        };
        let absent = self.prompts.absent.iter();
        let absent =
            absent.map(|name| at(None, name.clone(), "a file of this name".to_string(), "none".to_string()));
        let mut all: Vec<_> = transposed.chain(absent).collect();
        for ((track, said), (stem, grid)) in
            self.prompts.said.iter().enumerate().zip(self.stems.iter().zip(&self.grids))
        {
            let is = [("length", grid.frames), ("channels", grid.channels as u64)];
            for (said, (field, is)) in said.iter().zip(is) {
                // One channel is used for the two that were counted.
                if said.is_some_and(|said| said != is && !(field == "channels" && said == 2 * is)) {
                    let said = said.unwrap_or_default();
                    all.push(at(
                        Some(track as u64),
                        format!("{stem}.pt.{field}"),
                        said.to_string(),
                        is.to_string(),
                    ));
                }
            }
        }
        all
    }
}

// A code as int64. A number with a fraction is refused: of latents that were saved by mistake every one would become a code.
fn whole(code: &[u8], element: Element) -> std::result::Result<[u8; 8], String> {
    use windrow_core::number::{Number, number};
    match number(code, element) {
        Some(Number::Int(code)) => Ok(code.to_le_bytes()),
        // Below 2^53 either way, so that it is exact.
        Some(Number::Float(code)) if code.fract() == 0.0 && code.abs() < 9_007_199_254_740_992.0 => {
            Ok((code as i64).to_le_bytes())
        }
        Some(Number::Float(code)) => Err(code.to_string()),
        Some(Number::Big(code)) => Err(code.to_string()),
        Some(Number::Bool(_)) | None => Err("no number".to_string()),
    }
}

impl Lengths for Tracks {
    fn len(&self) -> u64 {
        self.grids.len() as u64
    }

    fn length(&self, record: u64) -> Result<u64> {
        Ok(self.grid(record)?.1.frames)
    }

    fn uniform(&self) -> Option<u64> {
        self.uniform
    }
}

impl Source for Tracks {
    fn schema(&self) -> &Schema {
        &self.schema
    }

    fn read<'a>(&'a self, span: Span, scratch: &'a mut Vec<u8>) -> Result<Values<'a>> {
        let (track, grid) = self.checked(span)?;
        let values = |bytes| Values {
            bytes,
            element: self.schema.element,
            channels: self.schema.channels.unwrap_or(1),
            decode: Decode::Plain,
        };
        if !self.is_borrowed(grid) {
            self.gather(track, grid, span, scratch).map_err(|e| e.record(span.record))?;
            return Ok(values(scratch));
        }
        let (start, size) = grid.range(span.start, span.len);
        let size = at_once(size)?;
        let bytes = self.object(track, grid).and_then(|object| object.read(start, size, scratch));
        Ok(values(bytes.map_err(|e| e.record(span.record))?))
    }

    fn extras(&self, record: u64) -> Result<Extras> {
        let (track, grid) = self.grid(record)?;
        let mut extras = self.prompts.extras(track, &self.stems[track]).map_err(|e| e.record(record))?;
        if Some(grid.channels) != self.schema.channels {
            extras.insert("mono", true);
        }
        Ok(extras)
    }

    fn text<'a>(&'a self, record: u64, _scratch: &'a mut String) -> Result<&'a str> {
        let (track, _) = self.grid(record)?;
        self.prompts.text(track).map_err(|e| e.record(record))
    }

    fn prefetch(&self, spans: &mut dyn Iterator<Item = (Span, u64)>) {
        for (span, _) in spans {
            if let Ok((track, grid)) = self.checked(span)
                && self.is_borrowed(grid)
            {
                let (start, size) = grid.range(span.start, span.len);
                self.files.prefetch(track, start, size);
            }
        }
    }

    fn touch(&self, span: Span) {
        if let Ok((track, grid)) = self.checked(span)
            && self.is_borrowed(grid)
            && let Ok(object) = self.files.get(track)
        {
            let (start, size) = grid.range(span.start, span.len);
            object.touch(start, size);
        }
    }

    fn locate(&self, span: Span) -> Result<Vec<Location>> {
        let (track, grid) = self.checked(span)?;
        let place = |start, size| Location { file: self.files.name(track), start, size };
        if grid.in_order() {
            let (start, size) = grid.range(span.start, span.len);
            return Ok(vec![place(start, size)]);
        }
        let frames = span.start..span.start + span.len;
        let size = grid.element.size() as u64;
        let numbers = frames.flat_map(|frame| (0..grid.channels).map(move |c| grid.place(frame, c)));
        Ok(numbers.map(|start| place(start, size)).collect())
    }

    fn files(&self) -> Vec<FileInfo> {
        let metadata = self.prompts.metadata();
        let described = metadata.map(|o| FileInfo { file: o.name().to_string(), size: o.size() });
        self.files.infos().into_iter().chain(described).collect()
    }

    fn fingerprint(&self) -> Result<u64> {
        self.files.fingerprint(&[Codes.name().as_bytes(), &self.prompts.hash().to_le_bytes()])
    }

    fn format(&self) -> &'static str {
        Codes.name()
    }
}
