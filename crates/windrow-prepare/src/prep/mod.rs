//! Preparation in tasks, over any number of workers: a plan that splits by arithmetic, tasks that give the same bytes whoever
//! runs them and however often, and one data set of their parts in the end.

mod convert;
mod encode;
mod index;
mod job;
mod join;
mod merge;
mod part;
mod place;
mod plan;
mod ranges;
mod running;
mod status;
mod task;

pub use convert::{Conversion, ConvertWorker, join_convert, plan_convert};
pub use encode::{EncodeFiles, EncodeWorker, Records, check_files, encoded, plan_encode};
pub use index::{IndexWorker, join_index, plan_index};
pub use job::{CONVERT, ENCODE, INDEX, Job, JobInput, TASK_BYTES, TOKENIZE, Tasks};
pub use join::join;
pub use merge::merge;
pub use place::{Folder, Place, clean};
pub use plan::plan_tokenize;
pub use running::Running;
pub use status::{Failed, Status, status};
pub use task::Worker;
