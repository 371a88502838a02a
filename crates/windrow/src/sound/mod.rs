//! Sound files into codes: a folder of them with its prompts, one track after the other through the codec, and the data
//! set that comes of it.

mod encode;
mod folder;
mod tags;
mod tasks;
mod track;

pub use encode::{EncodeOptions, Encoded, Failure, encode, encode_with};
pub use folder::{
    FolderOptions, PROMPTS_BESIDE, SUFFIXES, SUFFIXES_NOT_READ, SoundFile, has_sound_name, sound_files,
};
pub use tags::Skip;
pub(crate) use tasks::{Tracks, decides, join};
pub use track::{Reading, Track, codes_of};
