//! Whether the texts of a column are all different, of any number of lines in little memory: their hashes go to a file.

use windrow_core::Result;
use windrow_core::store::Draft;
use xxhash_rust::xxh3::xxh3_64;

/// Hashes that are held.
const HELD: usize = 1 << 12;
/// Hashes that are compared at a time, at least, and the share of all that is more.
const COMPARED: u64 = 1 << 15;
const SHARE: u64 = 16;
const SIZE: usize = size_of::<u64>();

/// Texts, by their hashes.
#[derive(Default)]
pub(super) struct Distinct {
    held: Vec<u64>,
    file: Option<Draft>,
}

impl Distinct {
    /// Takes in a text.
    pub(super) fn add(&mut self, text: &[u8]) {
        self.held.push(xxh3_64(text));
    }

    /// Moves what is too much for the memory to a file, which `create` gives.
    ///
    /// # Errors
    /// `Io`.
    pub(super) fn settle(&mut self, create: impl FnOnce() -> Result<Draft>) -> Result<()> {
        if self.held.len() < HELD {
            return Ok(());
        }
        let file = match &mut self.file {
            Some(file) => file,
            none => none.insert(create()?),
        };
        self.held.drain(..).try_for_each(|hash| file.append(&hash.to_le_bytes()))
    }

    /// Whether no two are the same; two that only share a hash count as the same.
    ///
    /// # Errors
    /// `Io`.
    pub(super) fn are_different(&mut self) -> Result<bool> {
        let in_file = self.file.as_ref().map_or(0, |file| file.size() / SIZE as u64);
        let n = in_file + self.held.len() as u64;
        // Equal hashes are of one part, and a part is held.
        let parts = n.div_ceil(COMPARED.max(n / SHARE)).max(1);
        for part in 0..parts {
            let mut own: Vec<u64> = self.held.iter().copied().filter(|hash| hash % parts == part).collect();
            if let Some(file) = &mut self.file {
                take(file, in_file, |hash| hash % parts == part, &mut own)?;
            }
            own.sort_unstable();
            if own.windows(2).any(|pair| pair[0] == pair[1]) {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

// Adds those hashes of a file that are wanted.
fn take(file: &mut Draft, n: u64, is_wanted: impl Fn(u64) -> bool, own: &mut Vec<u64>) -> Result<()> {
    let mut block = vec![0; HELD * SIZE];
    let mut at = 0;
    while at < n {
        let count = (n - at).min(HELD as u64);
        let bytes = &mut block[..count as usize * SIZE];
        file.read_at(at * SIZE as u64, bytes)?;
        let hashes = bytes.as_chunks::<SIZE>().0.iter().map(|hash| u64::from_le_bytes(*hash));
        own.extend(hashes.filter(|hash| is_wanted(*hash)));
        at += count;
    }
    Ok(())
}
