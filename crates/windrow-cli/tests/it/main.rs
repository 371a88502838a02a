//! One test binary for the command line: every command as it is typed, every exit code, every way of being stopped.

#[cfg(test)]
mod commands;
#[cfg(test)]
mod demo;
#[cfg(test)]
mod failures;
#[cfg(test)]
mod limits;
#[cfg(test)]
mod program;
#[cfg(test)]
mod report;
#[cfg(test)]
mod stopped;
