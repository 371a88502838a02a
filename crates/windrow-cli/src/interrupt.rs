//! Ctrl-C: the first asks to stop where the work can continue later, the second ends at once.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock};

use signal_hook::consts::{SIGINT, SIGXFSZ};
use signal_hook::{SigId, flag, low_level};
use windrow::dev::stop;
use windrow::prepare::{Progress, Watch};
use windrow::{Error, Kind, Result};

use crate::failure::INTERRUPTED;

/// Whether Ctrl-C came.
static ASKED: LazyLock<Arc<AtomicBool>> = LazyLock::new(Arc::default);

/// Makes a limit on the size of files (`ulimit -f`) an error of writing. By default the system ends the program there,
/// without a word.
pub(crate) fn limits_are_errors() {
    // A system that takes no handler does as it does by default.
    let _ = flag::register(SIGXFSZ, Arc::default());
}

/// Whether the user asked to stop. While it lives, Ctrl-C does not end the program.
pub(crate) struct Interrupt {
    asked: Arc<AtomicBool>,
    handlers: Vec<SigId>,
}

impl Interrupt {
    /// Listens for Ctrl-C. Only for work that looks here often.
    pub(crate) fn listen() -> Interrupt {
        let asked = ASKED.clone();
        asked.store(false, Ordering::Relaxed);
        stop::ask_by(|| ASKED.load(Ordering::Relaxed));
        // In this order: the first signal finds the flag down and only raises it.
        let handlers = [
            flag::register_conditional_shutdown(SIGINT, INTERRUPTED, asked.clone()),
            flag::register(SIGINT, asked.clone()),
        ];
        // A system that takes no handler ends the program at the first Ctrl-C.
        Interrupt { asked, handlers: handlers.into_iter().flatten().collect() }
    }

    /// Whether Ctrl-C came.
    pub(crate) fn asked(&self) -> bool {
        self.asked.load(Ordering::Relaxed)
    }

    /// `Interrupted` once Ctrl-C came.
    pub(crate) fn check(&self) -> Result<()> {
        if self.asked() {
            Err(Error::new(Kind::Interrupted, "interrupted").hint("it can be run again"))
        } else {
            Ok(())
        }
    }
}

/// Asks work to stop, and shows nothing of how far it is.
impl Watch for Interrupt {
    fn progress(&self, _now: Progress) {}

    fn cancelled(&self) -> bool {
        self.asked()
    }
}

impl Drop for Interrupt {
    fn drop(&mut self) {
        for id in self.handlers.drain(..) {
            low_level::unregister(id);
        }
    }
}
