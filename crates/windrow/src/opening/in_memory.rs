//! Data sets whose records are in memory instead of files.

use windrow_core::format::{Options, learned};
use windrow_core::source::SharedSource;
use windrow_core::store::StoreSet;
use windrow_core::{Error, Result};

use crate::opening::dataset::Dataset;
use crate::opening::owner::Owner;
use crate::opening::paths::Paths;

impl Dataset {
    /// The records of a source that reads no files, and what they are made of. Of `options` only those count that name a
    /// part of the records, or what is beside them that says which tokens are learned. Batches, states and pickles are as those of files; a recipe cannot hold them.
    ///
    /// # Errors
    /// `Config` or `Mismatch` for a part that these records do not have.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use windrow::dev::source::{Extras, HeldBytes, InMemory};
    /// use windrow::{DType, Dataset, Element, Owner};
    ///
    /// let hours: HeldBytes = Arc::new((0..48u32).flat_map(u32::to_le_bytes).collect::<Vec<u8>>());
    /// let source = InMemory::new("hours", Element::little(DType::U32), None, vec![(hours, Extras::new())])?;
    /// let data = Dataset::in_memory(Arc::new(source), Owner::new(()), &Default::default())?;
    /// assert_eq!(data.windows(windrow::Windows::new(24).stride(1))?.len(), 24);
    /// # Ok::<(), windrow::Error>(())
    /// ```
    pub fn in_memory(source: SharedSource, owner: Owner, options: &Options) -> Result<Dataset> {
        let nowhere = Paths::list(Vec::<String>::new());
        let source = learned(source, options)?;
        let data = Dataset::new(nowhere, options.clone(), source, None, StoreSet::default())?;
        Ok(Dataset { owner: Some(owner), ..data })
    }

    /// What a data set in memory is made of; `None` where files hold the records.
    pub fn owner(&self) -> Option<&Owner> {
        self.owner.as_ref()
    }

    /// Refuses records that text cannot name.
    pub(crate) fn in_text(&self) -> Result<()> {
        match self.owner {
            None => Ok(()),
            Some(_) => Err(Error::config("the records are in memory, which no plan can hold as text").hint(
                "give the loader itself to trace, coverage and extract, or write the data and open it as a file",
            )),
        }
    }
}
