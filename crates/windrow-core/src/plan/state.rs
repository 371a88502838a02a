//! Where a run is: small, plain JSON, the same on every rank.

use serde::{Deserialize, Serialize};

use super::{Cursor, Identity, Plan};
use crate::error::{Error, Result};

/// Version of [`State`].
pub const STATE_VERSION: u32 = 1;

/// Where a run is: how many samples of the epoch were delivered, to all ranks together.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct State {
    /// 1.
    pub version: u32,
    /// The plan's [`Identity`], of what decides the samples that were delivered.
    pub plan: String,
    /// The seed of the order.
    pub seed: u64,
    /// The epoch, from 0.
    pub epoch: u64,
    /// Samples of the epoch that were delivered.
    pub samples: u64,
}

impl Identity {
    /// The state of a run of the plan at a place.
    pub fn state(&self, plan: &Plan, cursor: Cursor) -> State {
        State::new(&self.before(plan.sampler(), cursor), plan.seed(), cursor)
    }
}

impl State {
    /// The state of a run of this plan at `cursor`.
    pub fn new(identity: &Identity, seed: u64, cursor: Cursor) -> State {
        State {
            version: STATE_VERSION,
            plan: identity.to_string(),
            seed,
            epoch: cursor.epoch,
            samples: cursor.samples,
        }
    }

    /// Reads the JSON text of a state.
    ///
    /// # Errors
    /// `Corrupt` when it is not a state; `Unsupported` when it is of another version.
    pub fn from_json(text: &str) -> Result<State> {
        let state: State = serde_json::from_str(text).map_err(|e| {
            Error::corrupt("this is not a loader state").caused_by(e).hint("pass what @state@ gave")
        })?;
        match state.version {
            STATE_VERSION => Ok(state),
            other => Err(Error::unsupported(format!(
                "a state of version {other}; this windrow reads version {STATE_VERSION}"
            ))),
        }
    }

    /// Where the run was, if it was a run of this plan and seed.
    ///
    /// # Errors
    /// `Mismatch` naming what differs.
    pub fn cursor(&self, identity: &Identity, seed: u64) -> Result<Cursor> {
        identity.check(&self.plan)?;
        if self.seed != seed {
            return Err(Error::mismatch(format!(
                "the state has seed {}, this loader has seed {seed}",
                self.seed
            ))
            .hint("give the loader the seed of the run that saved the state"));
        }
        Ok(Cursor::at(self.epoch, self.samples))
    }
}
