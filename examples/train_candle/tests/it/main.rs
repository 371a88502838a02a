//! Runs the program as a user does: kills it, resumes it, gives it what it must refuse.

mod desk;
mod killed;
mod refused;
mod runs;
