//! windrow for Python: handles, one error mapping, and buffers handed over without a copy.

mod array;
mod audio;
mod batches;
mod blocks;
mod callback;
mod codec;
mod codes;
mod convert;
mod dataset;
mod delivery;
mod dtype;
mod epochs;
mod error;
mod framework;
mod function;
mod index;
mod json;
mod json_strings;
mod keys;
mod loader;
mod logging;
mod near;
mod options;
mod own_options;
mod paths;
mod pickled;
mod prepare;
mod ranks;
mod record;
mod row;
mod running;
mod samples;
mod scaler;
mod seqax;
mod shown;
mod sound;
mod store_options;
mod text;
mod trace;
mod view;
mod waiting;
mod write;

use pyo3::prelude::*;

#[pymodule(gil_used = true)]
fn _native(module: &Bound<'_, PyModule>) -> PyResult<()> {
    logging::install(module.py())?;
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add_class::<dataset::Dataset>()?;
    module.add_class::<view::View>()?;
    module.add_class::<view::Mix>()?;
    module.add_class::<loader::Loader>()?;
    module.add_class::<blocks::Blocks>()?;
    module.add_class::<text::Tokenizer>()?;
    module.add_class::<codec::Codec>()?;
    module.add_function(wrap_pyfunction!(dataset::open, module)?)?;
    module.add_function(wrap_pyfunction!(dataset::_reopen, module)?)?;
    let stop_all = wrap_pyfunction!(running::_stop_all, module)?;
    module.py().import("atexit")?.call_method1("register", (stop_all,))?;
    module.add_function(wrap_pyfunction!(view::mix, module)?)?;
    module.add_function(wrap_pyfunction!(view::_recut, module)?)?;
    module.add_function(wrap_pyfunction!(view::_remix, module)?)?;
    module.add_function(wrap_pyfunction!(seqax::_swapped, module)?)?;
    module.add_function(wrap_pyfunction!(function::_described, module)?)?;
    module.add_function(wrap_pyfunction!(prepare::index, module)?)?;
    module.add_function(wrap_pyfunction!(prepare::tokenize, module)?)?;
    module.add_function(wrap_pyfunction!(write::write, module)?)?;
    module.add_function(wrap_pyfunction!(convert::convert, module)?)?;
    module.add_function(wrap_pyfunction!(audio::read_audio, module)?)?;
    module.add_function(wrap_pyfunction!(audio::write_audio, module)?)?;
    module.add_function(wrap_pyfunction!(sound::encode, module)?)?;
    module.add_function(wrap_pyfunction!(sound::rebuild_metadata, module)?)?;
    module.add_function(wrap_pyfunction!(sound::_track, module)?)?;
    module.add_function(wrap_pyfunction!(prepare::verify, module)?)?;
    module.add_function(wrap_pyfunction!(prepare::_main, module)?)?;
    module.add_function(wrap_pyfunction!(prepare::create_dummy_data, module)?)?;
    module.add_function(wrap_pyfunction!(prepare::formats, module)?)?;
    module.add_function(wrap_pyfunction!(codes::delay, module)?)?;
    module.add_function(wrap_pyfunction!(codes::undelay, module)?)?;
    module.add_function(wrap_pyfunction!(codes::_lay_codes, module)?)?;
    module.add_function(wrap_pyfunction!(codes::_draw_below, module)?)?;
    module.add_function(wrap_pyfunction!(trace::trace, module)?)?;
    module.add_function(wrap_pyfunction!(trace::find, module)?)?;
    Ok(())
}
