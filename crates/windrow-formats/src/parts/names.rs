//! Which file of a data set in parts is called what.

use windrow_core::format::write::PartFile;

/// The folder of the parts.
pub(super) const FOLDER: &str = "parts";
/// The folder of the jobs.
pub(super) const JOBS: &str = "prep";
/// The table of very many parts, beside the manifest.
pub(super) const TABLE: &str = "windrow.parts";
/// Digits of a part's number, at least.
const DIGITS: usize = 6;

/// The name of a file of a part, in the folder of the parts.
pub(super) fn file_name(task: u64, what: PartFile) -> String {
    format!("{task:0DIGITS$}{}", ending(what))
}

/// The number of the part that a file of this name is of; `None` for any other name.
pub(super) fn task_of(name: &str, what: PartFile) -> Option<u64> {
    let digits = name.strip_suffix(ending(what))?;
    let task = digits.bytes().all(|b| b.is_ascii_digit()).then(|| digits.parse().ok())??;
    (file_name(task, what) == name).then_some(task)
}

fn ending(what: PartFile) -> &'static str {
    match what {
        PartFile::Values => ".bin",
        PartFile::Lengths => ".len",
        PartFile::Rows => ".rows",
        PartFile::Sums => ".sums",
        PartFile::Manifest => ".json",
        PartFile::Failure => ".error.json",
        PartFile::Running => ".running.json",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_tells_its_part_and_no_other_name_does() {
        for task in [0, 17, 999_999, 1_000_000, u64::MAX] {
            for what in [PartFile::Values, PartFile::Manifest, PartFile::Failure] {
                assert_eq!(task_of(&file_name(task, what), what), Some(task));
            }
            assert_eq!(task_of(&file_name(task, PartFile::Failure), PartFile::Manifest), None);
            assert_eq!(task_of(&file_name(task, PartFile::Running), PartFile::Manifest), None);
        }
        for name in [
            "17.bin",
            "0000017.bin",
            "000017.len",
            "+00017.bin",
            "train.bin",
            ".bin",
            "99999999999999999999.bin",
        ] {
            assert_eq!(task_of(name, PartFile::Values), None, "{name}");
        }
        assert_eq!(file_name(17, PartFile::Values), "000017.bin");
    }
}
