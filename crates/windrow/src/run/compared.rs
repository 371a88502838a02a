//! Two plans side by side: whether they give the same batches, else from which step on they do not, and why.

use serde::Serialize;
use serde_json::Value;
use windrow_core::Result;
use windrow_core::plan::{Cursor, Identity, LastBatch, OtherStep, Plan, Run, Steps, first_difference};
use windrow_core::sampler::Shard;

use crate::opening::dataset::Dataset;
use crate::run::builder::LoaderBuilder;
use crate::run::recipe::Recipe;
use crate::views::samples::Samples;

/// How two plans differ.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Comparison {
    /// Every step gives the same batch.
    pub same: bool,
    /// The first step that does not, where one was found.
    pub first: Option<OtherStep>,
    /// The steps that were compared, where none of them differs but later ones may; 0 where all are the same.
    pub compared: u64,
    /// The options that make them different; those that decide no batch are left out.
    pub differences: Vec<PlanDifference>,
}

/// An option that two plans do not have in common.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct PlanDifference {
    /// What it is of: data, view, order, mixture, seed, batch size, last batch, skip, map.
    pub what: String,
    /// Where it is in the plan's JSON.
    pub option: String,
    /// Its value in the first plan; null where it has none.
    pub a: Value,
    /// Its value in the second.
    pub b: Value,
}

/// Compares two plans, looking for the first step that differs among `most` steps at most.
///
/// # Errors
/// As [`Recipe::builder`]; what reading the data says; `Interrupted` when `is_wanted` says no.
pub fn compare(a: &Recipe, b: &Recipe, most: u64, is_wanted: &dyn Fn() -> bool) -> Result<Comparison> {
    let builders = [a.builder()?, b.builder()?];
    let plans = [builders[0].plan()?, builders[1].plan()?];
    let identities = [plans[0].identity()?, plans[1].identity()?];
    let steps = [a.steps(&plans[0])?, b.steps(&plans[1])?];
    let same_rows = identities[0] == identities[1] && a.seed == b.seed;
    let same_size = a.global_batch_size == b.global_batch_size;
    // Alike but for what does not fill an epoch's last batch: that is where they part.
    let tail = plans[0].sampler().len(0).filter(|_| same_rows && same_size);
    let from = match (steps[0].last == steps[1].last, tail) {
        (false, Some(_)) if plans[0].sampler().batches().is_some() => {
            let whole = Steps { last: LastBatch::Drop, ..steps[0] }.in_epoch(plans[0].sampler(), 0);
            let all = Steps { last: LastBatch::Keep, ..steps[0] }.in_epoch(plans[0].sampler(), 0);
            whole.filter(|_| whole != all)
        }
        (false, Some(len)) if len % a.global_batch_size != 0 => Some(len / a.global_batch_size),
        (true, _) if same_rows && same_size => None,
        (false, _) if same_rows && same_size => None,
        _ => Some(0),
    };
    let mut differences = differences(a, b, &identities)?;
    name_records(&builders, &mut differences);
    let Some(from) = from else {
        return Ok(Comparison { same: true, first: None, compared: 0, differences: Vec::new() });
    };
    let runs = [0, 1].map(|of| Run { plan: &plans[of], steps: &steps[of] });
    let first = first_difference(runs, from, most, is_wanted)?;
    let compared = if first.is_none() { from.saturating_add(most) } else { 0 };
    Ok(Comparison { same: false, first, compared, differences })
}

impl Recipe {
    /// How its plan is divided into steps, for all ranks together.
    ///
    /// # Errors
    /// `Config` when there would never be a batch.
    pub fn steps(&self, plan: &Plan) -> Result<Steps> {
        let steps = Steps {
            global_batch_size: self.global_batch_size,
            shard: Shard::ALONE,
            last: self.last_batch(),
            epochs: None,
            micro_batches: 1,
            is_balanced: false,
        };
        steps.check(plan.sampler(), Cursor::default())?;
        Ok(steps)
    }
}

fn differences(a: &Recipe, b: &Recipe, identities: &[Identity; 2]) -> Result<Vec<PlanDifference>> {
    let json = |recipe: &Recipe| serde_json::to_value(recipe).unwrap_or_default();
    let mut found = Vec::new();
    walk(&mut String::new(), &json(a), &json(b), &mut found);
    let same = |part: &str| identities[0].part(part) == identities[1].part(part);
    let mut kept = Vec::new();
    for (option, a, b) in found {
        let Some(what) = what(&option) else { continue };
        // Data that was moved, and 7 to 3 for 0.7 to 0.3, decide the same.
        let decides = match what {
            "data" => !same("source") || !same("layout"),
            "order" | "mixture" => !(same("order") && same("phases")),
            "view" => !(same("source") && same("view") && same("layout")),
            _ => true,
        };
        if decides {
            kept.push(PlanDifference { what: what.to_string(), option, a, b });
        }
    }
    // What no option distinguishes: data that changed behind the same path.
    for (part, what) in [("source", "data"), ("view", "view"), ("order", "order"), ("layout", "view")] {
        if !same(part) && kept.is_empty() {
            let [a, b] = identities.each_ref().map(|identity| identity.part(part).into());
            kept.push(PlanDifference { what: what.to_string(), option: part.to_string(), a, b });
        }
    }
    Ok(kept)
}

// Of parts that differ in the records that were chosen, the first place at which they do is said instead of the choices.
fn name_records(builders: &[LoaderBuilder; 2], differences: &mut Vec<PlanDifference>) {
    let parts = builders[0].parts().iter().zip(builders[1].parts());
    for (number, (ours, theirs)) in parts.enumerate() {
        let data = [ours, theirs].map(Samples::dataset);
        let option = format!("parts[{number}].options.select");
        let is_of_choice = |difference: &PlanDifference| difference.option.starts_with(&option);
        if !differences.iter().any(is_of_choice) {
            continue;
        }
        let Some(place) = first_apart(data[0], data[1]) else { continue };
        let [a, b] =
            data.map(|data| if place < data.len() { data.number(place).into() } else { Value::Null });
        differences.retain(|difference| !is_of_choice(difference));
        let option = format!("{option}, the record at place {place}");
        differences.insert(0, PlanDifference { what: "data".to_string(), option, a, b });
    }
}

// The first place at which the records of two data sets have other numbers.
fn first_apart(a: &Dataset, b: &Dataset) -> Option<u64> {
    let both = a.len().min(b.len());
    let apart = (0..both).find(|place| a.number(*place) != b.number(*place));
    apart.or((a.len() != b.len()).then_some(both))
}

// What an option decides; nothing where it decides no batch.
fn what(option: &str) -> Option<&'static str> {
    let top = option.split(['.', '[']).next().unwrap_or_default();
    Some(match top {
        // A plan's parts are objects, each named by its number.
        _ if option.starts_with("parts[") && option.contains("].view") => "view",
        _ if option.starts_with("parts[") => "data",
        "shuffle" => "order",
        "seed" => "seed",
        "global_batch_size" | "max_tokens" | "multiple" | "pool" | "lengths" => "batch size",
        "drop_last" | "repeat_last" => "last batch",
        "skip" => "skip",
        "map_name" => "map",
        "part_ids" => "view",
        "plan" | "version" | "names" | "balance" | "accumulate" => return None,
        _ => "mixture",
    })
}

// The places at which two JSON values differ, and the values there.
fn walk(at: &mut String, a: &Value, b: &Value, found: &mut Vec<(String, Value, Value)>) {
    let depth = at.len();
    match (a, b) {
        _ if a == b => {}
        (Value::Object(ours), Value::Object(theirs)) => {
            let mut names: Vec<&String> = ours.keys().chain(theirs.keys()).collect();
            names.sort_unstable();
            names.dedup();
            for name in names {
                if depth > 0 {
                    at.push('.');
                }
                at.push_str(name);
                let [a, b] = [ours, theirs].map(|object| object.get(name).unwrap_or(&Value::Null));
                walk(at, a, b, found);
                at.truncate(depth);
            }
        }
        (Value::Array(ours), Value::Array(theirs)) if ours.iter().chain(theirs).any(Value::is_object) => {
            for number in 0..ours.len().max(theirs.len()) {
                at.extend(["[", &number.to_string(), "]"]);
                let [a, b] = [ours, theirs].map(|array| array.get(number).unwrap_or(&Value::Null));
                walk(at, a, b, found);
                at.truncate(depth);
            }
        }
        _ => found.push((at.clone(), a.clone(), b.clone())),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn values_that_differ_are_named_by_their_place() {
        let mut found = Vec::new();
        let a = json!({"cuts": [{"view": {"pack": {"length": 8}}}], "weights": [1, 2], "seed": 0});
        let b = json!({"cuts": [{"view": {"pack": {"length": 9, "eos": 3}}}], "weights": [2, 1], "seed": 0});
        walk(&mut String::new(), &a, &b, &mut found);
        let places: Vec<&str> = found.iter().map(|(place, ..)| place.as_str()).collect();
        assert_eq!(places, ["cuts[0].view.pack.eos", "cuts[0].view.pack.length", "weights"]);
        assert_eq!(found[0].1, Value::Null);
    }
}
