//! What the thread that assembled a batch does with it before it is queued: a frontend's function, called for each row.

use std::sync::Arc;

use crate::collate::Batch;
use crate::error::Result;
use crate::plan::{Own, Plan, Step, Steps};
use crate::sampler::Turn;

/// Which samples a batch holds.
#[derive(Clone, Debug)]
pub struct Origin {
    /// The plan that it is of.
    pub plan: Arc<Plan>,
    /// The rule from step to step.
    pub steps: Steps,
    /// The step.
    pub step: Step,
    /// Of each row, its position in the step.
    pub own: Own,
    /// Of each row, the number of its sample in the plan and the pass.
    pub turns: Vec<Turn>,
}

/// Makes something else of each batch, in the thread that assembled it.
///
/// The engine holds no lock during a call, so a call may wait for anything but the loader itself.
pub trait Finish: Send + Sync {
    /// Runs all the work of one thread: what the thread keeps from batch to batch is set up around it.
    fn around(&self, work: &(dyn Fn() + Send + Sync)) {
        work();
    }

    /// What the batch becomes. `is_wanted` says between rows whether anybody still waits for it.
    ///
    /// # Errors
    /// What the function says: the batch's own error.
    fn finish(&self, batch: Batch, origin: &Origin, is_wanted: &dyn Fn() -> bool) -> Result<Batch>;
}
