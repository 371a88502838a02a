//! Runs the program as a user does: kills it, resumes it, gives it what it must refuse.

#[cfg(test)]
mod desk;
#[cfg(test)]
mod killed;
#[cfg(test)]
mod refused;
#[cfg(test)]
mod runs;
