//! windrow for Python: handles, one error mapping, and buffers handed over without a copy.
//!
//! # Modules
//!
//! * `dataset`: an opened data set, and the methods that make views;
//! * `view`: views and mixtures: samples by number;
//! * `loader`: batches, states, delivery, trace, answers about a plan, speed;
//! * `prepare`: index, tokenize, write, convert, verify, manifests, the cache, tasks;
//! * `sound`: sound files, the codec, codes, folders;
//! * `python`: conversions between Python and Rust: arrays, dtypes, rows, errors, Ctrl-C.

mod dataset;
mod loader;
mod prepare;
mod python;
mod sound;
mod view;

use numpy::PyArray1;
use pyo3::prelude::*;
use windrow::dev::hide_caught_panics;
use windrow::dev::spelling::{Frontend, speak};

#[pymodule(gil_used = true)]
fn _native(module: &Bound<'_, PyModule>) -> PyResult<()> {
    speak(Frontend::Python);
    hide_caught_panics();
    python::logging::install(module.py())?;
    python::interrupt::ask_python();
    python::credentials::give_credentials();
    // What NumPy offers is looked up at its first use, where Ctrl-C would be a panic: here it ends the import.
    drop(PyArray1::<u8>::zeros(module.py(), 0, false));
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add_class::<dataset::Dataset>()?;
    module.add_class::<view::View>()?;
    module.add_class::<view::Mix>()?;
    module.add_class::<loader::Loader>()?;
    module.add_class::<loader::blocks::Blocks>()?;
    module.add_function(wrap_pyfunction!(loader::_loader, module)?)?;
    module.add_class::<prepare::text::Tokenizer>()?;
    module.add_class::<sound::codec::Codec>()?;
    module.add_class::<view::epochs::_Closes>()?;
    module.add_function(wrap_pyfunction!(dataset::open::_open, module)?)?;
    module.add_function(wrap_pyfunction!(dataset::open::_reopen, module)?)?;
    module.add_function(wrap_pyfunction!(dataset::open::_in_memory, module)?)?;
    let stop_all = wrap_pyfunction!(loader::running::_stop_all, module)?;
    module.py().import("atexit")?.call_method1("register", (stop_all,))?;
    module.add_function(wrap_pyfunction!(view::_mix, module)?)?;
    module.add_function(wrap_pyfunction!(view::temperature, module)?)?;
    module.add_function(wrap_pyfunction!(view::_recut, module)?)?;
    module.add_function(wrap_pyfunction!(view::_remix, module)?)?;
    module.add_function(wrap_pyfunction!(loader::seqax::_swapped, module)?)?;
    module.add_function(wrap_pyfunction!(python::function::_hash, module)?)?;
    module.add_function(wrap_pyfunction!(python::near::_unexpected, module)?)?;
    module.add_function(wrap_pyfunction!(python::rows::_options, module)?)?;
    module.add_function(wrap_pyfunction!(prepare::_index, module)?)?;
    module.add_function(wrap_pyfunction!(prepare::tokenize::_tokenize, module)?)?;
    module.add_function(wrap_pyfunction!(prepare::prep::_prep, module)?)?;
    module.add_function(wrap_pyfunction!(prepare::write::_write, module)?)?;
    module.add_function(wrap_pyfunction!(prepare::convert::_convert, module)?)?;
    module.add_function(wrap_pyfunction!(sound::audio::read_audio, module)?)?;
    module.add_function(wrap_pyfunction!(sound::audio::write_audio, module)?)?;
    module.add_function(wrap_pyfunction!(sound::folder::_encode, module)?)?;
    module.add_function(wrap_pyfunction!(sound::folder::rebuild_metadata, module)?)?;
    module.add_function(wrap_pyfunction!(sound::folder::_track, module)?)?;
    module.add_function(wrap_pyfunction!(prepare::_verify, module)?)?;
    module.add_function(wrap_pyfunction!(prepare::keep::_manifest, module)?)?;
    module.add_function(wrap_pyfunction!(prepare::keep::_cache, module)?)?;
    module.add_function(wrap_pyfunction!(prepare::_main, module)?)?;
    module.add_function(wrap_pyfunction!(prepare::create_dummy_data, module)?)?;
    module.add_function(wrap_pyfunction!(prepare::formats, module)?)?;
    module.add_function(wrap_pyfunction!(sound::codes::delay, module)?)?;
    module.add_function(wrap_pyfunction!(sound::codes::undelay, module)?)?;
    module.add_function(wrap_pyfunction!(sound::codes::_assemble_codes, module)?)?;
    module.add_function(wrap_pyfunction!(sound::codes::_draw_below, module)?)?;
    module.add_function(wrap_pyfunction!(loader::bench::_bench, module)?)?;
    module.add_function(wrap_pyfunction!(loader::trace::_trace, module)?)?;
    module.add_function(wrap_pyfunction!(loader::trace::_find, module)?)?;
    module.add_function(wrap_pyfunction!(loader::answers::diff, module)?)?;
    module.add_function(wrap_pyfunction!(loader::answers::_coverage, module)?)?;
    module.add_function(wrap_pyfunction!(loader::answers::_extract, module)?)?;
    Ok(())
}
