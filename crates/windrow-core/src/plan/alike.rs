//! Which views can give rows of one batch, and which batches of one run.

use std::collections::HashMap;
use std::iter;
use std::ops::Range;
use std::sync::Arc;

use super::Feed;
use crate::collate::Field;
use crate::error::{Error, Result};

impl Feed {
    /// Whether rows of the other can be in a batch with rows of this one, which are called by these names where they
    /// cannot.
    ///
    /// # Errors
    /// `Mismatch` that names the tensors that differ.
    pub fn check_rows(&self, other: &Feed, names: [&str; 2]) -> Result<()> {
        let Some([ours, theirs]) = tensors([self, other], names)? else { return Ok(()) };
        let layouts = [self, other].map(|feed| feed.collate().describe());
        // The same layout of records with and without channels, or of bins of more segments, has other shapes.
        if layouts[0] == layouts[1] && ours == theirs {
            return Ok(());
        }
        let found = if ours == theirs {
            format!("{} is {}, {} is {}", names[0], layouts[0], names[1], layouts[1])
        } else {
            differences([&ours, &theirs], names, &|ours, theirs| ours == theirs)
        };
        Err(Error::mismatch(format!("{} and {} give different tensors: {found}", names[0], names[1])).hint(
            "a batch takes rows of every view of a mix: cut all with the same view, length, dtype and labels; records [T, C] \
             need as many channels, bins as many records in the fullest row or @fields@ without cu_seqlens, and a loss mask \
             beside the tokens of all or of none",
        ))
    }

    /// Whether batches of the other can be in a run with batches of this one: the same tensors by name and dtype, whatever their
    /// lengths are.
    ///
    /// # Errors
    /// As [`Feed::check_rows`].
    pub fn check_batches(&self, other: &Feed, names: [&str; 2]) -> Result<()> {
        let Some([ours, theirs]) = tensors([self, other], names)? else { return Ok(()) };
        let found = differences([&ours, &theirs], names, &|ours, theirs| ours.dtype == theirs.dtype);
        if found.is_empty() {
            return Ok(());
        }
        Err(Error::mismatch(format!("{} and {} give different tensors: {found}", names[0], names[1])).hint(
            "batches of one part each may differ in length, and have the same tensors: give all views the same labels and dtype, \
             and @fields@ that all of them have",
        ))
    }

    /// Tells views whose tensors differ apart, so that no batch takes rows of both.
    ///
    /// # Errors
    /// What their layouts say.
    pub fn told_apart(mut feeds: Vec<Feed>) -> Result<Vec<Feed>> {
        let mut known = HashMap::new();
        for feed in &mut feeds {
            let fields = feed.collate().fields(&mut iter::empty())?;
            let number = known.len();
            feed.tensors = *known.entry(format!("{} {fields:?}", feed.layout())).or_insert(number);
        }
        Ok(feeds)
    }
}

/// Whether views can be in one plan, where batches take rows of all of them, or of one of these runs of views.
///
/// # Errors
/// As [`Feed::check_rows`].
pub(super) fn check(feeds: &[Feed], of_batches: &[Range<usize>]) -> Result<()> {
    let number = |feed: usize| format!("view {feed}");
    for (other, feed) in feeds.iter().enumerate().skip(1) {
        let names = [number(0), number(other)];
        let names = names.each_ref().map(String::as_str);
        match of_batches.is_empty() {
            true => feeds[0].check_rows(feed, names)?,
            false => feeds[0].check_batches(feed, names)?,
        }
    }
    for views in of_batches {
        let Some((first, others)) = feeds.get(views.clone()).and_then(<[Feed]>::split_first) else {
            continue;
        };
        for (other, feed) in (views.start + 1..).zip(others) {
            first.check_rows(feed, [&number(views.start), &number(other)])?;
        }
    }
    Ok(())
}

// The tensors of both; none of two views whose records can be in one batch.
fn tensors(feeds: [&Feed; 2], names: [&str; 2]) -> Result<Option<[Arc<[Field]>; 2]>> {
    match feeds.map(|feed| feed.collate().rows()) {
        [Some(ours), Some(theirs)] => ours.check_mixed(theirs, names).map(|()| None),
        [None, None] => {
            let [ours, theirs] = feeds.map(|feed| feed.collate().fields(&mut iter::empty()));
            Ok(Some([ours?, theirs?]))
        }
        [ours, _] => {
            let [rows, tensors] = if ours.is_some() { names } else { [names[1], names[0]] };
            Err(Error::mismatch(format!("{rows} gives rows, {tensors} tensors"))
                .hint("a batch takes rows of every view of a mix: cut all with the same view"))
        }
    }
}

// Which fields only one of them has, and which are not `alike`.
fn differences(fields: [&[Field]; 2], names: [&str; 2], alike: &dyn Fn(&Field, &Field) -> bool) -> String {
    let there = |of: usize, name: &str| fields[of].iter().find(|field| field.name == name);
    let only = |of: usize| {
        let all = fields[of].iter().filter(|field| there(1 - of, &field.name).is_none());
        let all: Vec<&str> = all.map(|field| &*field.name).collect();
        (!all.is_empty()).then(|| format!("only {} has {}", names[of], all.join(", ")))
    };
    let other = fields[0].iter().filter_map(|ours| {
        let theirs = there(1, &ours.name).filter(|theirs| !alike(ours, theirs))?;
        let [ours_are, theirs_are] = [ours, theirs].map(|field| format!("{} {:?}", field.dtype, field.shape));
        Some(format!("{} is {ours_are} of {}, {theirs_are} of {}", ours.name, names[0], names[1]))
    });
    let all: Vec<String> = [only(0), only(1)].into_iter().flatten().chain(other).collect();
    all.join("; ")
}
