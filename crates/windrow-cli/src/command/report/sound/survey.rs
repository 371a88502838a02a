//! A look at every file, or at some taken evenly: the header of each, and of some the samples.

use windrow::prepare::{self, Watch};
use windrow::{Error, Kind, Result};

use super::super::sample::Sample;
use super::files::Files;
use super::levels::{Header, Levels, header, levels};
use crate::interrupt::Interrupt;
use crate::progress::Progress;
use crate::text;

/// Files whose header is read at most.
const MOST_FILES: u64 = 10_000;
/// Seconds of sound that are decoded at most, about, and of one file.
pub(super) const MOST_DECODED: f64 = 7_200.0;
pub(super) const MOST_OF_ONE: f64 = 1_200.0;

/// A file that can be read, as far as it was.
pub(super) struct Found {
    pub(super) header: Header,
    /// Where it was decoded.
    pub(super) levels: Option<Levels>,
}

impl Found {
    /// How long it lasts: as decoded, where that was to the end, else as the header says.
    pub(super) fn seconds(&self) -> Option<f64> {
        let decoded = self.levels.filter(|levels| levels.is_whole).map(|levels| levels.seconds);
        decoded.or(self.header.seconds)
    }
}

/// The files that were looked at.
pub(super) struct Survey {
    /// Numbers of files in the list, and what they are.
    pub(super) found: Vec<(usize, Result<Found>)>,
    pub(super) said: String,
    of: usize,
}

impl Survey {
    /// # Errors
    /// `Interrupted`. What cannot be read is a finding.
    pub(super) fn of(files: &Files, stop: &Interrupt, progress: &Progress<'_>) -> Result<Survey> {
        let sample = Sample::of(files.list.len() as u64, MOST_FILES);
        let mut found = Vec::with_capacity(sample.records.len());
        for file in &sample.records {
            stop.check()?;
            let file = *file as usize;
            let header = files.open(file).and_then(header);
            found.push((file, header.map(|header| Found { header, levels: None })));
        }
        let mut survey = Survey { found, said: sample.said_of("file"), of: files.list.len() };
        survey.decode(files, stop, progress)?;
        Ok(survey)
    }

    // So many files, evenly, that about `MOST_DECODED` is decoded.
    fn decode(&mut self, files: &Files, stop: &Interrupt, progress: &Progress<'_>) -> Result<()> {
        let capped = |found: &Found| found.header.seconds.unwrap_or(MOST_OF_ONE).min(MOST_OF_ONE);
        let readable: Vec<usize> = (0..self.found.len()).filter(|i| self.found[*i].1.is_ok()).collect();
        let total: f64 = self.readable().map(|(_, found)| capped(found)).sum();
        let share = (MOST_DECODED / total.max(f64::MIN_POSITIVE)).min(1.0);
        let chosen =
            Sample::of(readable.len() as u64, (share * readable.len() as f64).floor().max(1.0) as u64);
        let chosen: Vec<usize> = chosen.records.iter().map(|i| readable[*i as usize]).collect();
        let size = |i: &usize| files.list[self.found[*i].0].size;
        let mut now =
            prepare::Progress { done_bytes: 0, total_bytes: chosen.iter().map(size).sum(), records: 0 };
        let mut left = MOST_DECODED * 2.0;
        for i in chosen {
            // A choice of unusually long ones.
            if left <= 0.0 {
                break;
            }
            let (file, found) = &mut self.found[i];
            let heard = files.open(*file).and_then(|object| levels(object, MOST_OF_ONE, stop));
            match (heard, &mut *found) {
                (Ok(levels), Ok(found)) => {
                    left -= levels.seconds;
                    found.levels = Some(levels);
                }
                (Err(e), _) if e.kind() == Kind::Interrupted => return Err(e),
                (Err(e), found) => *found = Err(e),
                (Ok(_), Err(_)) => {}
            }
            now.done_bytes += files.list[*file].size;
            now.records += 1;
            progress.progress(now);
        }
        Ok(())
    }

    /// The files that can be read.
    pub(super) fn readable(&self) -> impl Iterator<Item = (usize, &Found)> {
        self.found.iter().filter_map(|(file, found)| Some((*file, found.as_ref().ok()?)))
    }

    /// The files that cannot.
    pub(super) fn unread(&self) -> impl Iterator<Item = (usize, &Error)> {
        self.found.iter().filter_map(|(file, found)| Some((*file, found.as_ref().err()?)))
    }

    /// How much was looked at, and how much of that cannot be read.
    pub(super) fn checked(&self) -> String {
        let (readable, unread) = (self.readable().count(), self.unread().count() as u64);
        let whole = self.readable().filter(|(_, found)| found.levels.is_some_and(|l| l.is_whole)).count();
        let files = text::counted(self.of as u64, "file");
        match (self.found.len() == self.of && whole == readable, unread) {
            (true, 0) => format!("All of {files} were read to the end; nothing is wrong with them."),
            (true, _) => {
                format!(
                    "Of {files}, {} cannot be read; the others were read to the end.",
                    text::count(unread)
                )
            }
            (false, _) => format!(
                "Of {files}, the headers of {} were read, and {} to the end; {} cannot be read.",
                text::count(self.found.len() as u64),
                text::count(whole as u64),
                text::count(unread)
            ),
        }
    }
}
