//! What a caller keeps with a data set in memory.

use std::any::Any;
use std::fmt;
use std::sync::Arc;

/// What a caller keeps with a data set in memory: what its records are made of, to make it again.
#[derive(Clone)]
pub struct Owner(Arc<dyn Any + Send + Sync>);

impl Owner {
    /// Keeps this.
    pub fn new(of: impl Any + Send + Sync) -> Owner {
        Owner(Arc::new(of))
    }

    /// What is kept, where it is a `T`.
    pub fn get<T: Any>(&self) -> Option<&T> {
        self.0.downcast_ref()
    }
}

impl fmt::Debug for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Owner")
    }
}
