//! A part of each record.

use std::sync::Arc;

use windrow_core::Result;
use windrow_core::collate::{Collate, Raw};
use windrow_core::plan::Balance;
use windrow_core::view::{self, Mode, View};

use crate::views::kind::{Cut, ViewKind};
use crate::views::option::view;

view! {
    /// Up to `length` values of each record, from a random place or from its start. `values`, `lengths`.
    pub struct Crop {
        @needs {
            /// Values of a sample.
            length: u64,
        }
        /// Where a sample starts: at a random place, or where its record does.
        #[kept = true]
        mode: Mode,
    }
    called "crop", "N values of each record, from a random place";
}

impl ViewKind for Crop {
    fn is_random(&self) -> bool {
        self.mode == Mode::Random
    }

    fn alike(&self, _by: &Balance) -> Option<(&'static str, &'static str)> {
        None
    }

    fn cut(&self, data: &Cut<'_>) -> Result<(Arc<dyn View>, Arc<dyn Collate>)> {
        let collate = Raw::new(data.schema(), self.length, data.dtype)?;
        Ok((Arc::new(view::Crop::new(data.lengths(), self.length, self.mode)?), Arc::new(collate)))
    }
}
