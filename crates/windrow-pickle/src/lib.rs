//! Python pickles and files of `torch.save` as data: lists, dicts, numbers, text, times, numpy arrays and torch tensors, of
//! protocols 0 to 5.
//!
//! A pickle is a program. The machine here runs the part of it that makes data, and knows a fixed table of names
//! (`names.rs`) for what numpy and torch write; any other name is an error, and nothing is ever called. No kept crate does
//! that: those that read pickles lose numpy's dtypes, and stop the process at values that nest deep or name themselves.
//!
//! # Modules
//!
//! * `machine`: the opcodes that make data, within a budget set by the size of the file;
//! * `names`: the table of names that a pickle may use;
//! * `calls`: what each of these names makes of its arguments;
//! * `value`: a value on the stack of the machine;
//! * `arena`: where results live; each is paid for from the budget;
//! * `array`: NumPy and torch arrays in a pickle: dtype, shape, strides;
//! * `tensor`: storages and tensors, with bounds compared with the storage;
//! * `described`: tensors whose storages the pickle names;
//! * `torch`: files of `torch.save`;
//! * `archive`: a zip archive whose declared values are compared with the file;
//! * `time`: NumPy and Python times as text;
//! * `unit`: the units of NumPy times.

pub mod archive;
pub mod arena;
pub mod array;
mod calls;
mod described;
mod machine;
mod names;
mod tensor;
mod time;
pub mod torch;
mod unit;
pub mod value;

pub use arena::{Arena, Budget, Node, TimeText};
pub use array::{Array, Data};
pub use described::{Tensor, Tree, described, described_tree, streamed, streamed_tree};
pub use machine::Machine;
pub use names::{Name, TimeName};
pub use torch::{Saved, SavedTensor, TORCH_STREAM, TorchSave};
pub use value::Value;
