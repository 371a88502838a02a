//! The warning about token IDs whose dtype neither the file nor the caller declares.

use windrow_core::{DType, Result};

use windrow_core::format::data_files::DataFiles;

/// The dtype of IDs of which nothing is declared: oxidizr's.
pub(super) const GUESSED: DType = DType::U32;

/// Warns that a dtype is guessed, and where most of the first IDs are larger than any vocabulary, as uint16 IDs read in pairs are,
/// that the guess looks wrong.
///
/// # Errors
/// What reading the first file says.
pub(super) fn warn(files: &DataFiles, name: &str) -> Result<()> {
    const LOOKED_AT: u64 = 4096;
    const LARGEST_VOCABULARY: u32 = 1 << 24;
    let object = files.get(0)?;
    let mut scratch = Vec::new();
    let bytes = object.read(0, object.size().min(LOOKED_AT) as usize, &mut scratch)?;
    let (ids, _) = bytes.as_chunks::<4>();
    let large = ids.iter().filter(|id| u32::from_le_bytes(**id) >= LARGEST_VOCABULARY).count();
    let guess = format!("{name}: a .bin without a manifest is read as {GUESSED}");
    if 2 * large > ids.len() {
        windrow_core::warn!(
            "{guess}, and most of its first IDs are then larger than any vocabulary: if they are uint16, as nanoGPT's, say \
             @dtype=uint16@"
        );
    } else {
        windrow_core::warn!("{guess}; @dtype@ says otherwise");
    }
    Ok(())
}
