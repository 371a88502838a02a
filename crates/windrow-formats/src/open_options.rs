//! Options of opening that only some of these formats follow.

pub(crate) use windrow_core::format::{COLUMN, COLUMNS};
use windrow_core::format::{OpenOption, OptionRow, Takes};

pub(crate) const AXIS: OpenOption = OpenOption::of_some(
    OptionRow::new(
        "axis",
        Takes::Words(&["time"]),
        "Of arrays: `time` makes one series of [T, C], not T series of C values.",
    ),
    "says itself what is a series",
    "it is for arrays [T, C] that are one series",
);

pub(crate) const PAYLOAD: OpenOption = OpenOption::of_some(
    OptionRow::new(
        "payload",
        Takes::Words(&["bytes", "text", "json", "example"]),
        "Of records of bytes, as in TFRecord, ArrayRecord and Bagz: what they hold.",
    ),
    "says itself what a record holds",
    "it is for records of bytes: TFRecord, ArrayRecord and Bagz",
);

pub(crate) const EOS: OpenOption = OpenOption::of_some(
    OptionRow::new(
        "document_eos",
        Takes::Id("ID"),
        "The ID that ends each document in raw token files: documents are records then.",
    ),
    "has records of its own",
    "it splits raw token files into documents; the view pack puts an EOS token between records with @eos@",
);

pub(crate) const INDEX_FOLDER: OpenOption = OpenOption::of_some(
    OptionRow::new("index_folder", Takes::Text("NAME"), "Name of the index folder."),
    "has no index folder",
    "it names the folder of a byte-offset index; leave it out",
);
