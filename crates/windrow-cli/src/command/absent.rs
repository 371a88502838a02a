//! Commands whose feature this build lacks: they are typed as ever, and say which feature that is.

use std::ffi::OsString;

use clap::Args;
use windrow::Error;

use crate::failure::Failure;

/// Whatever is typed behind the name of such a command.
#[derive(Args, Debug)]
pub(crate) struct Anything {
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, hide = true)]
    typed: Vec<OsString>,
}

/// The error of a command that needs this feature.
pub(crate) fn without(feature: &str) -> Failure {
    Error::built_without(feature).into()
}

/// The module of a command that needs a feature, where the feature is off.
macro_rules! absent {
    ($module:ident, $command:ident, $feature:literal) => {
        mod $module {
            use super::absent::{Anything, without};
            use crate::failure::Failure;
            use crate::out::Out;

            #[doc = concat!("Not in this build, which lacks the feature `", $feature, "`")]
            #[derive(Debug, clap::Args)]
            pub(crate) struct $command {
                #[command(flatten)]
                anything: Anything,
            }

            pub(crate) fn run(_: &$command, _: &mut Out) -> Result<i32, Failure> {
                Err(without($feature))
            }
        }
    };
}

pub(super) use absent;
