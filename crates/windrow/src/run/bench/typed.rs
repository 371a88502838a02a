//! What to type for a choice, in Python and on the command line: whoever measures at one may train with the other.

use windrow_core::Result;

use super::afford::{Choice, Known};
use crate::run::builder::LoaderBuilder;

/// The lines; none where there is nothing to choose.
///
/// # Errors
/// What asks for ranks.
pub(super) fn typed(builder: &LoaderBuilder, known: &Known, choice: Choice) -> Result<Vec<String>> {
    let bytes = (known.samples * known.sample_bytes).ceil() as u64;
    let path = builder.parts().first().map(|part| part.dataset().paths().to_string()).unwrap_or_default();
    let batch = builder.global_batch()?;
    let (cache, shuffle) = match choice {
        Choice::Kept => (Some(bytes), ""),
        Choice::Each => (Some(0), ""),
        Choice::Blocks => (None, ", shuffle=wr.Blocks()"),
        Choice::Neither => return Ok(Vec::new()),
    };
    let limit = cache.map_or(String::new(), |bytes| format!(", cache_limit={bytes}"));
    let of_command = match (cache, choice) {
        (_, Choice::Blocks) => "--shuffle blocks".to_string(),
        (Some(bytes), _) => format!("--cache-limit {bytes}"),
        (None, _) => String::new(),
    };
    Ok(vec![
        format!("ds = wr.open({path:?}{limit})"),
        format!("loader = wr.Loader(view, global_batch_size={batch}{shuffle})"),
        format!("on the command line: {of_command}"),
    ])
}
