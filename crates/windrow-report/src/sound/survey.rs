//! A look at every file, or at some taken evenly: the header of each, and of some the samples.

use windrow::prepare::{self, Watch};
use windrow::preview::text;
use windrow::{Error, Kind, Result};

use super::files::Files;
use super::levels::{Header, Levels, header, levels};
use crate::sample::Sample;
use crate::watch::check;

/// How much is looked at.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Budget {
    /// Files whose header is read at most.
    files: u64,
    /// Seconds of sound that are decoded at most, about.
    pub(crate) seconds: f64,
    /// Seconds of one file that are decoded at most.
    pub(crate) seconds_of_one: f64,
}

/// Done in about a minute.
pub(crate) const BUDGET: Budget = Budget { files: 10_000, seconds: 7_200.0, seconds_of_one: 1_200.0 };
/// What a second of sound takes at least, nearly always, where the header does not say how many there are.
const LEAST_BYTES_A_SECOND: f64 = 8_000.0;

/// A file that can be read, as far as it was.
pub(crate) struct Found {
    pub(crate) header: Header,
    /// Where it was decoded.
    pub(crate) levels: Option<Levels>,
}

impl Found {
    /// How long it lasts: as decoded, where that was to the end, else as the header says.
    pub(crate) fn seconds(&self) -> Option<f64> {
        let decoded = self.levels.filter(|levels| levels.is_whole).map(|levels| levels.seconds);
        decoded.or(self.header.seconds)
    }
}

/// The files that were looked at.
pub(crate) struct Survey {
    /// Numbers of files in the list, and what they are.
    pub(crate) found: Vec<(usize, Result<Found>)>,
    pub(crate) said: String,
    of: usize,
}

impl Survey {
    /// # Errors
    /// `Interrupted`. What cannot be read is a finding.
    pub(crate) fn of(files: &Files, budget: Budget, watch: &dyn Watch) -> Result<Survey> {
        let sample = Sample::of(files.list.len() as u64, budget.files);
        let mut found = Vec::with_capacity(sample.records.len());
        for file in &sample.records {
            check(watch)?;
            let file = *file as usize;
            let header = files.open(file).and_then(header);
            found.push((file, header.map(|header| Found { header, levels: None })));
        }
        let mut survey = Survey { found, said: sample.said_of("file"), of: files.list.len() };
        survey.decode(files, budget, watch)?;
        Ok(survey)
    }

    // Decodes files, evenly spread, up to about the seconds of the budget.
    fn decode(&mut self, files: &Files, budget: Budget, watch: &dyn Watch) -> Result<()> {
        let readable: Vec<usize> = (0..self.found.len()).filter(|i| self.found[*i].1.is_ok()).collect();
        let guessed = |file: usize| files.list[file].size as f64 / LEAST_BYTES_A_SECOND;
        let seconds = |(file, found): (usize, &Found)| found.header.seconds.unwrap_or_else(|| guessed(file));
        let total: f64 = self.readable().map(|one| seconds(one).min(budget.seconds_of_one)).sum();
        let share = (budget.seconds / total.max(f64::MIN_POSITIVE)).min(1.0);
        let chosen =
            Sample::of(readable.len() as u64, (share * readable.len() as f64).floor().max(1.0) as u64);
        let chosen: Vec<usize> = chosen.records.iter().map(|i| readable[*i as usize]).collect();
        let size = |i: &usize| files.list[self.found[*i].0].size;
        let mut now =
            prepare::Progress { done_bytes: 0, total_bytes: chosen.iter().map(size).sum(), records: 0 };
        let mut left = budget.seconds * 2.0;
        for i in chosen {
            // A choice of unusually long ones, or of some whose length was guessed too short.
            if left <= 0.0 {
                break;
            }
            let (file, found) = &mut self.found[i];
            let heard = files.open(*file).and_then(|object| levels(object, budget.seconds_of_one, watch));
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
            watch.progress(now);
        }
        Ok(())
    }

    /// The files that can be read.
    pub(crate) fn readable(&self) -> impl Iterator<Item = (usize, &Found)> {
        self.found.iter().filter_map(|(file, found)| Some((*file, found.as_ref().ok()?)))
    }

    /// The files that cannot.
    pub(crate) fn unread(&self) -> impl Iterator<Item = (usize, &Error)> {
        self.found.iter().filter_map(|(file, found)| Some((*file, found.as_ref().err()?)))
    }

    /// How much was looked at, and how much of that cannot be read.
    pub(crate) fn checked(&self) -> String {
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

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    fn survey(budget: Budget) -> (Survey, usize) {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/audio");
        let files = Files::find(&folder).unwrap();
        let survey = Survey::of(&files, budget, &()).unwrap();
        (survey, files.list.len())
    }

    #[test]
    fn within_the_budget_all_is_decoded_and_beyond_it_some_in_part() {
        let (all, n) = survey(BUDGET);
        assert_eq!((all.found.len(), all.readable().count(), all.unread().count()), (n, n - 1, 1));
        assert!(all.readable().all(|(_, found)| found.levels.is_some_and(|levels| levels.is_whole)));
        assert_eq!(
            all.checked(),
            format!("Of {n} files, 1 cannot be read; the others were read to the end.")
        );

        let (some, _) = survey(Budget { files: 8, seconds: 3.0, seconds_of_one: 1.0 });
        let heard: Vec<Levels> = some.readable().filter_map(|(_, found)| found.levels).collect();
        assert!((2..5).contains(&heard.len()), "{heard:?}");
        // A packet more than was allowed.
        assert!(heard.iter().all(|levels| levels.seconds < 1.5), "{heard:?}");
        assert!(some.readable().all(|(_, found)| found.seconds().is_some()));
        assert!(some.said.starts_with("a sample of 8 of 18 files"), "{}", some.said);
        assert!(
            some.checked().starts_with("Of 18 files, the headers of 8 were read, and "),
            "{}",
            some.checked()
        );
    }
}
