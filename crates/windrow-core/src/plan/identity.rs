//! What a plan is called: parts that decide batches, so that a state of another plan is refused with the difference.

use std::fmt;
use std::ops::Range;

use xxhash_rust::xxh3::xxh3_64;

use super::{Cursor, Feed, Plan, in_run};
use crate::error::{Error, Result};
use crate::sampler::{BlockShape, Described, ROWS, Sampler};
use crate::source::whole;

/// The parts that decide a plan's batches, in one line: `source=…;view=…;order=…;layout=…`, and `;phases=…` of an order that
/// changes, `;skip=…` where positions are skipped, `;map=…` where the function that rows go through has a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    text: String,
    source: String,
    view: String,
    layout: String,
    order: Described,
    map: Option<String>,
}

// A state stays below one kilobyte: longer parts are shown as their hash.
const MOST_BYTES: usize = 160;

const PARTS: [&str; 4] = ["source", "view", "order", "layout"];

impl Identity {
    pub(super) fn of(plan: &Plan) -> Result<Identity> {
        let mut sources = Vec::new();
        let mut views = Vec::new();
        for feed in plan.feeds() {
            let source = feed.source();
            sources.push(whole(|| source.word())?);
            views.push(feed.view().describe());
        }
        let mut layouts: Vec<String> = plan.feeds().iter().map(Feed::layout).collect();
        // One layout of all views is named once; in batches of one part each, views may differ.
        if layouts.iter().all(|layout| *layout == layouts[0]) {
            layouts.truncate(1);
        }
        let layout = layouts.join("+");
        let (source, view) = (sources.join("+"), views.join("+"));
        Ok(Identity::with(
            source,
            view,
            layout,
            plan.sampler().described(u64::MAX),
            plan.sampler().skips().to_vec(),
            plan.map_name().map(str::to_string),
        ))
    }

    /// What decides the batches before a place of the run alone: the same for plans that agree up to there.
    #[must_use]
    pub fn before(&self, sampler: &dyn Sampler, cursor: Cursor) -> Identity {
        let at = in_run(sampler, cursor);
        let reached = sampler.skips().iter().filter(|skip| u128::from(skip.start) < at).cloned().collect();
        let position = if cursor.epoch == 0 { cursor.samples } else { u64::MAX };
        let Identity { source, view, layout, map, .. } = self.clone();
        Identity::with(source, view, layout, sampler.described(position), reached, map)
    }

    fn with(
        source: String,
        view: String,
        layout: String,
        order: Described,
        skips: Vec<Range<u64>>,
        map: Option<String>,
    ) -> Identity {
        let (words, changes) = order.words();
        let parts = [("source", &source), ("view", &view), ("order", &words), ("layout", &layout)];
        let parts = parts.map(|(name, text)| format!("{name}={}", shown(text)));
        let changes = changes.map_or(String::new(), |changes| format!(";phases={changes}"));
        let ranges: Vec<String> = skips.iter().map(|skip| format!("{}..{}", skip.start, skip.end)).collect();
        let skip =
            if ranges.is_empty() { String::new() } else { format!(";skip={}", shown(&ranges.join(","))) };
        let named = map.as_ref().map_or(String::new(), |name| format!(";map={name}"));
        Identity { text: parts.join(";") + &changes + &skip + &named, source, view, layout, order, map }
    }

    /// The text of one of its parts: `source`, `view`, `order` or `layout`.
    pub fn part(&self, name: &str) -> &str {
        part(&self.text, name)
    }

    /// Refuses another identity, naming the parts that differ.
    ///
    /// # Errors
    /// `Mismatch`.
    pub fn check(&self, other: &str) -> Result<()> {
        if let Some(position) = self.first_difference(other) {
            let which = match self.order.order.contains("+budget-v1(") {
                true => "among those that are sorted together with the last that were delivered, or before",
                false => "before those that were delivered",
            };
            return Err(Error::mismatch(format!(
                "the state belongs to another plan: the shares of its mixture differ from sample {position} on, {which}"
            ))
            .hint("of a run that continues, phases and max_epochs may change after the samples that were delivered"));
        }
        if let [Some(ours), Some(theirs)] = [self.part("order"), part(other, "order")].map(batch_rows)
            && ours != theirs
            && self.differs_in_order_alone(other)
        {
            return Err(Error::mismatch(format!(
                "the state is of batches of {theirs} rows of one part each, this loader of batches of {ours} rows"
            ))
            .field("global_batch_size")
            .hint(format!("continue with the batch size of that run: @global_batch_size={theirs}@")));
        }
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
                     @blocks=size={size},lanes={lanes},rows={rows},pool={pool}@"
                    )
                }
                _ => self.hint(other),
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

    // Where the shares of two mixtures of the same parts differ first.
    fn first_difference(&self, other: &str) -> Option<u64> {
        if self.text == other || !self.differs_in_order_alone(other) {
            return None;
        }
        let (mut ours, order) = (self.order.clone(), part(other, "order"));
        ours.order = shown(&ours.order);
        ours.unchanged = ours.unchanged.as_deref().map(shown);
        ours.first_difference(order, Some(part(other, "phases")).filter(|changes| !changes.is_empty()))
    }

    fn differs_in_order_alone(&self, other: &str) -> bool {
        ["source", "view", "layout"].iter().all(|name| part(&self.text, name) == part(other, name))
    }

    // How to come back to the plan of the state.
    fn hint(&self, other: &str) -> String {
        let parts = PARTS.map(|name| (name, part(&self.text, name), part(other, name)));
        let differing: Vec<_> = parts.iter().filter(|(_, ours, theirs)| ours != theirs).collect();
        let hint = match differing[..] {
            [("source", ..)] => {
                "open the same data as the run that saved the state, with the same mask_column, exclude, split and period"
            }
            [("source", ours, theirs), ..] if ours.contains("mask=") != theirs.contains("mask=") => {
                "open the data with the mask_column of the run that saved the state; @mask_column=none@ is no mask"
            }
            [] if part(&self.text, "map") != part(other, "map") => {
                "give the loader the @map_name@ of the run that saved the state"
            }
            _ => "open the same data with the same view, order and dtype as the run that saved the state",
        };
        let hashed = differing.iter().any(|(_, ours, theirs)| is_hash(ours) || is_hash(theirs));
        let lists = "; @diff_recipe@ lists what differs";
        hint.to_string() + if hashed { lists } else { "" }
    }

    fn differences(&self, other: &str, it: &str, this: &str) -> Option<String> {
        if self.text == other {
            return None;
        }
        let mut differences: Vec<String> = self
            .text
            .split(';')
            .filter(|part| !other.split(';').any(|o| o == *part))
            .map(|part| {
                let name = part.split('=').next().unwrap_or_default();
                let theirs =
                    other.split(';').find(|o| o.starts_with(&format!("{name}="))).unwrap_or("nothing");
                // Two hashes say nothing to a reader: the options behind them do.
                let hashed = [part, theirs].iter().any(|text| text.contains("=#"));
                let options = if hashed { options(name) } else { "" };
                format!("{options}{it} has {theirs}, {this} has {part}")
            })
            .collect();
        // What only the other has.
        let own = |theirs: &&str| self.part(theirs.split('=').next().unwrap_or_default()).is_empty();
        differences.extend(
            other.split(';').filter(own).map(|theirs| format!("{it} has {theirs}, {this} has nothing")),
        );
        Some(differences.join("; "))
    }
}

// The options behind a part, to name before a hash.
fn options(name: &str) -> &'static str {
    match name {
        "source" => "the data differs, or its mask_column, exclude, split or period: ",
        "view" => "the view differs: ",
        "order" => "the order differs (shuffle; the parts and weights of a mixture): ",
        "layout" => "the contents of a batch differ (labels, masks, dtype): ",
        "skip" => "skip differs: ",
        _ => "",
    }
}

fn is_hash(text: &str) -> bool {
    text.starts_with('#')
}

// A text, or its hash where it is long. The rows of batches of one part each stay readable: another number of them is refused by it.
fn shown(text: &str) -> String {
    if text.len() <= MOST_BYTES {
        return text.to_string();
    }
    let rows = text.rfind(ROWS).filter(|_| batch_rows(text).is_some());
    format!("#{:016x}{}", xxh3_64(text.as_bytes()), rows.map_or("", |at| &text[at..]))
}

// The rows of a batch that the words of an order end with.
fn batch_rows(order: &str) -> Option<u64> {
    order.strip_suffix(')')?.rsplit_once(ROWS)?.1.parse().ok()
}

// The text of one part of an identity.
fn part<'i>(identity: &'i str, name: &str) -> &'i str {
    let parts = identity.split(';').filter_map(|part| part.split_once('='));
    parts.into_iter().find(|(found, _)| *found == name).map_or("", |(_, text)| text)
}

impl fmt::Display for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}
