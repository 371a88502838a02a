//! Blocks over the joined records.

use std::sync::Arc;

use serde_json::{Map, Value};
use windrow_core::collate::{Collate, Documents, DocumentsLayout, Labels, Positions, Shifted};
use windrow_core::format::{Takes, default_of};
use windrow_core::plan::{Balance, Feed};
use windrow_core::source::{Runs, SharedSource, Source};
use windrow_core::view::{self, RowLength, View};
use windrow_core::{Error, Lengths, Result};

use crate::opening::dataset::Dataset;
use crate::views::kind::{Cut, ViewKind};
use crate::views::multiple::Multiple;
use crate::views::option::{Given, chosen, view};
use crate::views::scope::Scope;

view! {
    /// Blocks of `length` inputs over the joined records: every token but the first is a target exactly once. `input_ids`,
    /// `labels`: `[length]`.
    ///
    /// With `documents` also what keeps documents apart, see [`Documents`](windrow_core::collate::Documents); with `shifted`
    /// the tensors of [`Shifted`](windrow_core::collate::Shifted).
    ///
    /// ```
    /// use windrow::Pack;
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let path = dir.path().join("tokens.bin");
    /// std::fs::write(&path, [5u32, 6, 0, 7, 8, 9, 0, 5, 6].map(u32::to_le_bytes).concat()).unwrap();
    /// let view = windrow::open(&path)?.pack(Pack::new(4).eos(0).documents(Default::default()))?;
    /// let batch = view.batch(&[0], 0)?;
    /// assert_eq!(batch.get::<i32>("segment_ids")?, [0, 0, 0, 1]);
    /// assert_eq!(batch.get::<i64>("labels")?, [6, 0, -100, 8]);
    /// # Ok::<(), windrow::Error>(())
    /// ```
    pub struct Pack {
        @needs {
            /// Inputs of a block.
            length: u64,
        }
        /// The ID to put after each record in the blocks; with documents it ends one wherever it is.
        eos: Option<i64> as i64,
        /// Make every token a target of one row, its input the token before, or 0 where the row or a record begins.
        shifted: bool,
        /// Keep documents apart: position_ids, segment_ids, cu_seqlens. A document is a record, or ends with eos.
        documents: Option<DocumentsLayout> as DocumentsLayout,
        /// Join documents in another order in each epoch, so that others share a block. A document is a record.
        reshuffle: bool,
        /// Which documents change places: all, those of a block of 2 MiB (at least 256), as blocks of an order read them, or N
        /// consecutive ones.
        scope: Option<Scope> as Scope,
        /// Fill each document, with its eos, up to a multiple of M positions; M divides length.
        multiple: Multiple as u64,
        /// What fills documents.
        pad_value: i64,
        /// Only these tensors, of rows with documents or shifted inputs.
        fields: Vec<String> as &[&str],
        /// What labels are: the token after each input, the input itself, or none.
        labels: Labels,
    }
    called "pack", "Blocks of N inputs over the joined records";
    beside {
        /// What positions of documents count from: the first token of each in the block, or its very first.
        positions: Takes::Words(&["block", "document"]), of Positions;
        /// The label of what documents do not learn.
        ignore_index: Takes::Id("ID"), or Labels::IGNORED;
    }
    arranged by arrange;
}

/// Puts the options of documents where the recipe has them.
///
/// # Errors
/// `Config` for options of documents without documents.
fn arrange(mut given: Given) -> Result<Given> {
    let mut layout = Map::new();
    for (name, default) in
        [("positions", default_of::<Positions>()), ("ignore_index", Labels::IGNORED.into())]
    {
        layout.extend(
            given.remove(name).filter(|value| *value != default).map(|value| (name.to_string(), value)),
        );
    }
    let is_chosen = given.remove("documents") == Some(Value::Bool(true));
    if !is_chosen && !layout.is_empty() {
        return Err(Error::config("positions and ignore_index are chosen of a pack without documents")
            .hint("add @documents=true@, or leave them out"));
    }
    given.extend(is_chosen.then(|| ("documents".to_string(), layout.into())));
    // All documents are those of no scope.
    given.retain(|name, value| name != "scope" || *value != "all");
    Ok(given)
}

impl ViewKind for Pack {
    fn source(&self, source: SharedSource) -> Result<SharedSource> {
        let keeps_records = self.eos.is_some() || self.reshuffle;
        Ok(if keeps_records { source } else { source.joined().unwrap_or(source) })
    }

    fn labels(&self) -> Option<Labels> {
        (!self.shifted).then_some(self.labels)
    }

    chosen!(labels_mut, labels, Labels);

    fn alike(&self, by: &Balance) -> Option<(&'static str, &'static str)> {
        match (&self.documents, by) {
            (None, _) => Some((
                "without documents all of its rows cost the same",
                "add @documents=true@, so that attention stays within documents, or leave @balance@ out",
            )),
            (Some(_), Balance::Tokens) => Some((
                "all of its rows have the same number of tokens",
                "@balance=attention@ counts what attention within documents costs",
            )),
            (Some(_), _) => None,
        }
    }

    fn cut(&self, data: &Cut<'_>) -> Result<(Arc<dyn View>, Arc<dyn Collate>)> {
        let collate = self.collate(data)?;
        self.check_eos(data)?;
        let view = match self.reshuffled(&*data.source)? {
            Some(scope) => {
                view::Pack::reshuffled(data.lengths(), self.row(), self.eos, self.reads_next(), scope)?
            }
            None => self.stored(data.lengths())?,
        };
        Ok((Arc::new(if self.documents.is_some() { view.telling_record() } else { view }), collate))
    }

    // Rows with documents or shifted inputs ask where records begin.
    fn feed(&self, feed: Feed, source: &SharedSource) -> Result<Feed> {
        if self.eos.is_some() || self.shifted || self.documents.is_some() || self.reshuffle {
            return Ok(feed);
        }
        let Some(runs) = Runs::of(source) else { return Ok(feed) };
        let runs = Arc::new(runs);
        let view = self.stored(runs.clone())?;
        Ok(feed.read_in_runs(runs, Arc::new(view)))
    }

    fn needs(&self) -> Option<u64> {
        Some(self.length.saturating_add(u64::from(self.reads_next())))
    }

    // Tokens of many documents in one file are one record, and nothing would be kept apart.
    fn warn(&self, data: &Dataset, _view: &dyn View) {
        // Of those that are filled only a record is a document.
        let ends = if self.multiple.fills() {
            Some("open the data with @open_with_eos@, the token that ends a document")
        } else {
            self.eos.is_none().then_some("say with @eos@ which token ends a document")
        };
        if let Some(ends) =
            ends.filter(|_| self.documents.is_some() && data.len() == 1 && data.source.joined().is_none())
        {
            windrow_core::warn!(
                "{}: documents are records, and this is one record of {} tokens; {ends}",
                data.paths,
                data.source.length(0).unwrap_or_default()
            );
        }
    }
}

impl Pack {
    // Records joined as they are stored.
    fn stored(&self, lengths: Arc<dyn Lengths>) -> Result<view::Pack> {
        let cut = if self.reads_next() { view::Pack::new } else { view::Pack::apart };
        cut(lengths, self.row(), self.eos)
    }

    fn row(&self) -> RowLength {
        self.multiple.of_rows(self.length)
    }

    // How many documents change places among themselves, where they do: all of them, or a number of them.
    fn reshuffled(&self, source: &dyn Source) -> Result<Option<Option<u64>>> {
        let scope = self.scope.unwrap_or_default();
        match self.reshuffle {
            true => Ok(Some(scope.documents(source))),
            false if scope == Scope::All => Ok(None),
            false => {
                Err(Error::config(format!("@scope={scope}@ of a pack whose documents keep their order"))
                    .field("scope")
                    .hint("add @reshuffle=true@, or leave @scope@ out"))
            }
        }
    }

    fn collate(&self, data: &Cut<'_>) -> Result<Arc<dyn Collate>> {
        if self.shifted && self.documents.is_some() {
            return Err(Error::config("rows with shifted inputs keep documents apart already")
                .hint("leave shifted out, or documents"));
        }
        if self.shifted && self.labels != Labels::Next {
            return Err(Error::config("rows with shifted inputs have targets, which are not labels")
                .hint("leave shifted out, or labels"));
        }
        self.check_multiple()?;
        let (schema, dtype, fields) = (data.schema(), data.dtype, &self.fields[..]);
        Ok(match (&self.documents, fields) {
            _ if self.shifted => {
                let shifted = Shifted::new(schema, self.length, dtype)?;
                Arc::new(if fields.is_empty() { shifted } else { shifted.only(fields)? })
            }
            (Some(layout), fields) => {
                let documents = Documents::new(schema, self.length, dtype, self.eos, layout.clone())?;
                let documents = documents.labels(self.labels)?;
                let documents = if fields.is_empty() { documents } else { documents.only(fields)? };
                match self.multiple.fills() {
                    true => Arc::new(documents.filled(self.multiple.0, self.pad_value)?),
                    false => Arc::new(documents),
                }
            }
            (None, []) => Arc::new(data.next_token(self.length, false, 0)?.labels(self.labels)?),
            (None, _) => {
                return Err(Error::config("fields are chosen of rows with documents or shifted inputs")
                    .hint("add documents or shifted, or leave them out"));
            }
        })
    }

    fn check_multiple(&self) -> Result<()> {
        let Multiple(multiple) = self.multiple;
        if self.multiple.fills() && self.documents.is_none() {
            return Err(Error::config(format!("@multiple={multiple}@ of a pack without documents"))
                .field("multiple")
                .hint("add @documents=true@, or leave @multiple@ out"));
        }
        if self.pad_value != 0 && !self.multiple.fills() {
            return Err(Error::config(format!(
                "@pad_value={}@ of a pack whose documents are not filled",
                self.pad_value
            ))
            .field("pad_value")
            .hint("add @multiple@, or leave @pad_value@ out"));
        }
        Ok(())
    }

    fn check_eos(&self, data: &Cut<'_>) -> Result<()> {
        let Some(eos) = self.eos else { return Ok(()) };
        let dtype = data.schema().element.dtype;
        if !dtype.holds(eos) {
            return Err(Error::config(format!("eos {eos} does not fit {dtype}")));
        }
        // The source's own may be no more than what the IDs go up to.
        let declared = data.data.manifest.as_ref().and_then(|manifest| manifest.vocab_size);
        match data.data.options.vocab_size.or(declared) {
            Some(size) if !u64::try_from(eos).is_ok_and(|eos| eos < size) => {
                Err(Error::config(format!("eos {eos} is outside the vocabulary of {size} IDs"))
                    .field("eos")
                    .hint("give an ID of the tokenizer's, or open the data with a vocab_size that holds it"))
            }
            _ => Ok(()),
        }
    }
}
