//! What a plan is called: parts that decide batches, so that a state of another plan is refused with the difference.

use std::fmt;

use xxhash_rust::xxh3::xxh3_64;

use super::Plan;
use crate::error::{Error, Result};
use crate::sampler::BlockShape;
use crate::source::whole;

/// The parts that decide a plan's batches, in one line: `source=…;view=…;order=…;layout=…`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity(String);

// A state stays below one kilobyte: longer parts are shown as their hash.
const MOST_BYTES: usize = 160;

impl Identity {
    pub(super) fn of(plan: &Plan) -> Result<Identity> {
        let mut sources = Vec::new();
        let mut views = Vec::new();
        for feed in plan.feeds() {
            let source = feed.source();
            let treated = source.treatment().map_or(String::new(), |t| format!(":{t}"));
            sources.push(format!(
                "{}:{}:{:016x}{treated}",
                source.format(),
                source.len(),
                whole(|| source.fingerprint())?
            ));
            views.push(feed.view().describe());
        }
        let layout = plan.feeds().first().map(|f| f.collate().describe()).unwrap_or_default();
        let parts = [
            ("source", sources.join("+")),
            ("view", views.join("+")),
            ("order", plan.sampler().describe()),
            ("layout", layout),
        ];
        let parts = parts.map(|(name, text)| match text.len() > MOST_BYTES {
            true => format!("{name}=#{:016x}", xxh3_64(text.as_bytes())),
            false => format!("{name}={text}"),
        });
        Ok(Identity(parts.join(";")))
    }

    /// Refuses another identity, naming the parts that differ.
    ///
    /// # Errors
    /// `Mismatch`.
    pub fn check(&self, other: &str) -> Result<()> {
        match self.differences(other, "the state", "this plan") {
            None => Ok(()),
            Some(differences) => Err(Error::mismatch(format!(
                "the state belongs to another plan: {differences}"
            ))
            .hint(match BlockShape::described(part(other, "order")) {
                // Numbers that were chosen for another batch size.
                Some(BlockShape { size, lanes, rows, pool }) if self.differs_in_order_alone(other) => {
                    format!(
                        "continue in the order of the run that saved the state: \
                     shuffle=wr.Blocks(size={size}, lanes={lanes}, rows={rows}, pool={pool})"
                    )
                }
                _ => "open the same data with the same view, order and dtype as the run that saved the state"
                    .into(),
            })),
        }
    }

    /// Refuses the identity that a saved plan had, naming the parts that differ.
    ///
    /// # Errors
    /// `Mismatch`.
    pub fn check_saved(&self, saved: &str) -> Result<()> {
        match self.differences(saved, "the plan", "what it opens now") {
            None => Ok(()),
            Some(differences) => {
                Err(Error::mismatch(format!("the plan does not fit its data any more: {differences}"))
                    .hint("it says what was read from the data as it was when the plan was saved"))
            }
        }
    }

    fn differs_in_order_alone(&self, other: &str) -> bool {
        ["source", "view", "layout"].iter().all(|name| part(&self.0, name) == part(other, name))
    }

    fn differences(&self, other: &str, it: &str, this: &str) -> Option<String> {
        if self.0 == other {
            return None;
        }
        let differences: Vec<String> = self
            .0
            .split(';')
            .filter(|part| !other.split(';').any(|o| o == *part))
            .map(|part| {
                let name = part.split('=').next().unwrap_or_default();
                let theirs = other.split(';').find(|o| o.starts_with(&format!("{name}=")));
                format!("{it} has {}, {this} has {part}", theirs.unwrap_or("nothing"))
            })
            .collect();
        Some(differences.join("; "))
    }
}

// The text of one part of an identity.
fn part<'i>(identity: &'i str, name: &str) -> &'i str {
    let parts = identity.split(';').filter_map(|part| part.split_once('='));
    parts.into_iter().find(|(found, _)| *found == name).map_or("", |(_, text)| text)
}

impl fmt::Display for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
