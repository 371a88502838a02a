//! Every archive is read, whichever split it is of, and the indices beside them are compared with their headers.

use windrow_core::Result;
use windrow_core::format::verify::{Opened, Verifier, Verify};
use windrow_core::format::{Confidence, Format, FormatInfo, Options, Probe};
use windrow_core::source::SharedSource;
use windrow_core::store::{expanded, open_if_there};

use super::table::Table;
use super::{Archives, WebDataset};

impl Verify for WebDataset {
    fn records(&self, _format: &dyn Format, probe: &Probe, out: &mut Verifier<'_>) -> Result<()> {
        match out.read_by(&Everything, probe)? {
            Opened::Before => Ok(()),
            Opened::Not(error) => out.found(error, &probe.display(), "content"),
            Opened::Read(_) => indices(probe, out),
        }
    }
}

/// All archives of a folder as one data set: damage of any of them is looked for.
struct Everything;

impl Format for Everything {
    fn info(&self) -> &'static FormatInfo {
        WebDataset.info()
    }

    fn recognise(&self, probe: &Probe) -> Confidence {
        WebDataset.recognise(probe)
    }

    fn open(&self, probe: &Probe, options: &Options) -> Result<SharedSource> {
        Archives::all(probe)?.open(probe, options)
    }
}

// The places of samples that Megatron-Energon keeps in `<archive>.idx`.
fn indices(probe: &Probe, out: &mut Verifier<'_>) -> Result<()> {
    for archive in Archives::all(probe)?.0 {
        let index = format!("{}.idx", archive.key);
        let Some(index) = open_if_there(probe.store.as_ref(), &index)? else { continue };
        let table = Table::of(&expanded(&probe.store, &archive.key, None)?)?;
        let expected = (table.count() + 1) * 8;
        if index.size() != expected {
            let found = format!("{} bytes", index.size());
            out.findings.problem(index.name(), None, "index", format!("{expected} bytes"), found);
            continue;
        }
        let mut scratch = Vec::new();
        for sample in 0..=table.count() {
            let said =
                index.read(sample * 8, 8, &mut scratch)?.first_chunk::<8>().map(|w| u64::from_le_bytes(*w));
            let place = table.place(sample)?;
            if said != Some(place) {
                let found = format!("byte {}", said.unwrap_or(0));
                out.findings.problem(index.name(), Some(sample), "index", format!("byte {place}"), found);
                break;
            }
        }
    }
    Ok(())
}
