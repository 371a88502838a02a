//! Trying again: what may fix itself, how often, and after what wait.

use std::thread;
use std::time::{Duration, Instant};

use windrow_core::{Error, Kind};

/// How long to try where a server or the way to it fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Patience {
    /// Attempts after the first one; counted anew whenever bytes came through.
    pub retries: u32,
    /// The wait before the first of them; doubled each time, and jittered.
    pub first_wait: Duration,
    /// A connection that is silent for longer is given up.
    pub silence: Duration,
}

/// No wait is longer, whatever a server asks for.
const LONGEST_WAIT: Duration = Duration::from_secs(60);

impl Default for Patience {
    fn default() -> Self {
        let (first_wait, silence) = (Duration::from_millis(500), Duration::from_secs(30));
        Patience { retries: 5, first_wait, silence }
    }
}

/// A failed attempt.
#[derive(Debug)]
pub(crate) enum Trouble {
    /// It may work later: after this wait, where the server said so.
    Passing { error: Error, wait: Option<Duration> },
    /// What came is not what was promised; asking for all of it again may help.
    Wrong(Error),
    /// Asking again gives the same.
    Lasting(Error),
}

impl Trouble {
    pub(crate) fn passing(error: Error) -> Trouble {
        Trouble::Passing { error, wait: None }
    }

    pub(crate) fn into_error(self) -> Error {
        match self {
            Trouble::Passing { error, .. } | Trouble::Wrong(error) | Trouble::Lasting(error) => error,
        }
    }
}

impl From<Error> for Trouble {
    fn from(error: Error) -> Self {
        Trouble::Lasting(error)
    }
}

/// Tries until it works, the trouble is not a passing one, or patience is at its end.
///
/// `attempt` is given the best position that was ever reached and moves it forward when bytes came through.
pub(crate) fn trying<T>(
    patience: &Patience,
    stopped: &dyn Fn() -> bool,
    mut attempt: impl FnMut(&mut u64) -> Result<T, Trouble>,
) -> Result<T, Trouble> {
    let mut reached = 0;
    let mut failed = 0;
    loop {
        let before = reached;
        let (error, asked) = match attempt(&mut reached) {
            Err(Trouble::Passing { .. }) if stopped() => return Err(interrupted()),
            Err(Trouble::Passing { error, wait }) => (error, wait),
            done => return done,
        };
        failed = if reached > before { 0 } else { failed + 1 };
        if failed > patience.retries {
            return Err(Trouble::Passing { error, wait: None });
        }
        let backoff = patience.first_wait * 2u32.saturating_pow(failed.saturating_sub(1)).min(1 << 16);
        let wait = asked.unwrap_or(backoff.mul_f64(0.75 + 0.5 * fastrand::f64())).min(LONGEST_WAIT);
        log::debug!(target: "windrow", "again in {wait:?}: {error:#}");
        if wait > Duration::from_secs(2) {
            log::warn!(target: "windrow", "trying again in {} s: {}", wait.as_secs(), error.message());
        }
        if !sleep(wait, stopped) {
            return Err(interrupted());
        }
    }
}

pub(crate) fn interrupted() -> Trouble {
    let error = Error::new(Kind::Interrupted, "stopped before the end; what came so far is kept");
    Trouble::Lasting(error.hint("run the same command again to continue"))
}

/// Sleeps, unless it is to stop; whether it slept to the end.
fn sleep(time: Duration, stopped: &dyn Fn() -> bool) -> bool {
    let until = Instant::now() + time;
    loop {
        if stopped() {
            return false;
        }
        match until.checked_duration_since(Instant::now()) {
            Some(left) if !left.is_zero() => thread::sleep(left.min(Duration::from_millis(50))),
            _ => return true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const QUICK: Patience =
        Patience { retries: 3, first_wait: Duration::from_millis(1), silence: Duration::from_secs(1) };

    fn passing() -> Trouble {
        Trouble::passing(Error::new(Kind::Io, "503"))
    }

    #[test]
    fn patience_ends_and_begins_anew_with_every_byte() {
        let mut n = 0;
        let ended: Result<(), _> = trying(&QUICK, &|| false, |_| {
            n += 1;
            Err(passing())
        });
        assert!(matches!(ended, Err(Trouble::Passing { .. })));
        assert_eq!(n, 4);

        let mut n = 0;
        let done = trying(&QUICK, &|| false, |reached| {
            n += 1;
            *reached += u64::from(n % 3 == 0);
            if n == 30 { Ok(n) } else { Err(passing()) }
        });
        assert_eq!(done.ok(), Some(30));
    }

    #[test]
    fn lasting_trouble_and_a_stop_end_it_at_once() {
        let mut n = 0;
        let ended: Result<(), _> = trying(&QUICK, &|| false, |_| {
            n += 1;
            Err(Trouble::Lasting(Error::not_found("404")))
        });
        assert_eq!((ended.map_err(|t| t.into_error().kind()), n), (Err(Kind::NotFound), 1));
        let slow = Patience { first_wait: Duration::from_secs(3600), ..QUICK };
        let ended: Result<(), _> = trying(&slow, &|| true, |_| Err(passing()));
        assert_eq!(ended.map_err(|t| t.into_error().kind()), Err(Kind::Interrupted));
    }
}
