//! What the fuzz targets share: an allocator that refuses large requests, data sets made of arbitrary parts, and a drive
//! through everything that an opened source can be asked.

mod allocator;
mod arrays;
mod compressed;
mod cuts;
mod drive;
mod folder;
mod opened;
mod series;
mod side;
mod text;

pub use allocator::{MOST_BYTES, Refusing, allow_at_once};
pub use arrays::{array, arrays};
pub use compressed::is_compressed;
pub use cuts::{Cut, DTYPES, check_view, dtype};
pub use drive::{drive, values};
pub use folder::{Folder, Rows, Schema};
pub use opened::opened;
pub use series::{cached_alone, series};
pub use side::Side;
pub use text::is_no_text;

/// Every target allocates through it.
#[global_allocator]
static ALLOCATOR: Refusing = Refusing;
