//! `windrow inspect PLAN --mixing`: how well a plan's order mixes.

use serde_json::{Value, json};

use crate::args::{Data, loader};
use crate::failure::{DONE, Failure};
use crate::out::Out;
use crate::{plan, text};

/// Shows the figures of the plan that is named, shared by this number of ranks.
///
/// # Errors
/// For several paths; those of reading a plan and opening its data.
pub(crate) fn show(data: &Data, world_size: u64, out: &mut Out) -> Result<i32, Failure> {
    let Some(path) = data.only() else { return Err(Failure::usage("--mixing takes one plan".to_string())) };
    let recipe = plan::read(path)
        .map_err(|e| e.hint(format!("{}; `windrow inspect` of data has no order", plan::IS_A_PLAN)))?;
    let builder = loader(&recipe, Some(0))?.rank(0, world_size);
    let found = builder.mixing()?;
    let names = builder.part_names();
    for (number, of) in found.iter().enumerate() {
        let mut pairs = Vec::new();
        pairs.extend(names.get(number).map(|name| ("part", text::escaped(name))));
        let (blocks, size) = (text::count(of.blocks), text::counted(of.block_size, "sample"));
        pairs.push(("order", of.order.clone()));
        pairs.push(("batch", format!("{:.1} rows of {blocks} blocks of {size}", of.rows)));
        pairs.push(("effective blocks", format!("{:.1} in a batch", of.effective_blocks)));
        pairs.push((
            "excess variance",
            format!("{:.2} times a global shuffle's, of what a block's samples share", of.excess_variance),
        ));
        pairs.push(("reach", format!("{}: a block is spread over them", text::counted(of.reach, "sample"))));
        pairs
            .push(("neighbours apart", format!("{:.2} of a global shuffle's distance", of.neighbours_apart)));
        if let Some((padding, at_random)) = of.padding_share.zip(of.padding_share_at_random) {
            let [padding, at_random] = [padding, at_random].map(|share| format!("{:.1} %", 100.0 * share));
            pairs.push((
                "padding",
                format!("{padding} of all positions, {at_random} were rows in random order"),
            ));
        }
        // It is that of the whole batch.
        if let Some(waiting) = of.waiting.as_ref().filter(|_| number + 1 == found.len()) {
            let [before, after] =
                [waiting.before, waiting.after].map(|share| format!("{:.2} %", share * 100.0));
            let text =
                format!("{after} of a step, for the dearest of {} ranks; {before} in order", waiting.ranks);
            pairs.push(("waiting", text));
        }
        out.pairs(&pairs)?;
    }
    let parts: Vec<Value> = (found.iter().enumerate())
        .map(|(number, of)| {
            let mut object = json!(of);
            if let Some(name) = names.get(number) {
                object["part"] = json!(name);
            }
            object
        })
        .collect();
    let batch_size = builder.recipe()?.global_batch_size;
    out.object(json!({ "path": path, "batch_size": batch_size, "mixing": parts }))?;
    Ok(DONE)
}
