//! The table of formats: the light ones and those of the crates for heavy libraries. One whose library this build lacks is
//! recognised, and opening it is an error that names the feature.

use std::sync::LazyLock;

use windrow_core::format::{self, Format, FormatInfo, OptionRow};
use windrow_formats::FORMATS;

/// The formats of all crates, in the order in which they are asked.
pub fn formats() -> &'static [&'static dyn Format] {
    static ALL: LazyLock<Vec<&'static dyn Format>> = LazyLock::new(|| {
        let mut all: Vec<&'static dyn Format> = vec![&windrow_zarr::FlatTokens];
        all.extend(windrow_arrow::FORMATS);
        all.extend(FORMATS);
        all
    });
    &ALL
}

/// The description of the format of this name.
///
/// ```
/// assert!(windrow::format_info("tokens").is_some_and(|info| info.is_for_tokens()));
/// ```
pub fn format_info(name: &str) -> Option<&'static FormatInfo> {
    format::info_of(formats(), name)
}

/// What opening takes: options of every format, then those of some.
///
/// ```
/// let names: Vec<&str> = windrow::open_options().map(|option| option.name).collect();
/// assert!(names.contains(&"dtype") && names.contains(&"axis"));
/// ```
pub fn open_options() -> impl Iterator<Item = &'static OptionRow> {
    static ALL: LazyLock<Vec<&'static OptionRow>> = LazyLock::new(|| format::open_options(formats()));
    ALL.iter().copied()
}
