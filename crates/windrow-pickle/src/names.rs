//! The names that a pickle may use. The table is all there is: nothing is looked up elsewhere.

use windrow_core::DType;

/// A name that is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Name {
    /// An empty array, whose state follows.
    NumpyReconstruct,
    /// An array of bytes.
    NumpyFromBuffer,
    /// A numpy number: its dtype and bytes.
    NumpyScalar,
    /// The class of arrays.
    NumpyArray,
    /// A dtype, whose state follows.
    NumpyDType,
    /// Bytes that are written as text.
    Encode,
    /// A dict, filled later.
    EmptyDict,
    /// A list, filled later.
    EmptyList,
    /// Bytes of a list of numbers.
    Bytes,
    /// A tensor: its storage, offset, shape and strides.
    TorchTensor,
    /// A tensor of a dtype that no storage has: of bytes.
    TorchTensorOf,
    /// A class of tensors.
    TorchClass,
    /// A tensor of such a class, by what makes its tensor.
    TorchFromType,
    /// A tensor that is a parameter: the tensor.
    TorchParameter,
    /// A dtype of torch.
    TorchDType(DType),
    /// A storage in torch's own file format.
    TorchBytes,
    /// A storage in an archive of torch.
    TorchStorage(DType),
    /// A number with a decimal point: its text.
    Decimal,
    /// A date, a time, a span or a zone.
    Time(TimeName),
}

/// What `datetime` and `zoneinfo` make.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimeName {
    /// A date with a time.
    DateTime,
    /// A date.
    Date,
    /// A time of day.
    Time,
    /// A span of time.
    Span,
    /// An offset from UTC.
    Offset,
    /// The class of zones by name, what gives its reader, and that reader.
    ZoneClass,
    /// What gives the reader of the zone class.
    GetAttr,
    /// The reader of the zone class.
    Zone,
}

const NAMES: &[(&str, &str, Name)] = &[
    ("numpy.core.multiarray", "_reconstruct", Name::NumpyReconstruct),
    ("numpy._core.multiarray", "_reconstruct", Name::NumpyReconstruct),
    ("numpy.core.multiarray", "scalar", Name::NumpyScalar),
    ("numpy._core.multiarray", "scalar", Name::NumpyScalar),
    ("numpy.core.numeric", "_frombuffer", Name::NumpyFromBuffer),
    ("numpy._core.numeric", "_frombuffer", Name::NumpyFromBuffer),
    ("numpy", "ndarray", Name::NumpyArray),
    ("numpy", "dtype", Name::NumpyDType),
    ("_codecs", "encode", Name::Encode),
    ("collections", "OrderedDict", Name::EmptyDict),
    ("builtins", "dict", Name::EmptyDict),
    ("__builtin__", "dict", Name::EmptyDict),
    ("builtins", "list", Name::EmptyList),
    ("__builtin__", "list", Name::EmptyList),
    ("builtins", "bytes", Name::Bytes),
    ("__builtin__", "bytes", Name::Bytes),
    ("builtins", "bytearray", Name::Bytes),
    ("__builtin__", "bytearray", Name::Bytes),
    ("torch._utils", "_rebuild_tensor_v2", Name::TorchTensor),
    ("torch._utils", "_rebuild_tensor_v3", Name::TorchTensorOf),
    ("torch._utils", "_rebuild_parameter", Name::TorchParameter),
    ("torch._utils", "_rebuild_parameter_with_state", Name::TorchParameter),
    ("torch._tensor", "_rebuild_from_type_v2", Name::TorchFromType),
    ("torch", "Tensor", Name::TorchClass),
    ("torch.nn.parameter", "Parameter", Name::TorchClass),
    ("torch.nn.parameter", "Buffer", Name::TorchClass),
    ("torch.storage", "_load_from_bytes", Name::TorchBytes),
    ("torch.storage", "UntypedStorage", Name::TorchStorage(DType::U8)),
    ("torch", "float32", Name::TorchDType(DType::F32)),
    ("torch", "float64", Name::TorchDType(DType::F64)),
    ("torch", "float16", Name::TorchDType(DType::F16)),
    ("torch", "bfloat16", Name::TorchDType(DType::Bf16)),
    ("torch", "uint8", Name::TorchDType(DType::U8)),
    ("torch", "uint16", Name::TorchDType(DType::U16)),
    ("torch", "uint32", Name::TorchDType(DType::U32)),
    ("torch", "uint64", Name::TorchDType(DType::U64)),
    ("torch", "int8", Name::TorchDType(DType::I8)),
    ("torch", "int16", Name::TorchDType(DType::I16)),
    ("torch", "int32", Name::TorchDType(DType::I32)),
    ("torch", "int64", Name::TorchDType(DType::I64)),
    ("torch", "bool", Name::TorchDType(DType::Bool)),
    ("torch", "FloatStorage", Name::TorchStorage(DType::F32)),
    ("torch", "DoubleStorage", Name::TorchStorage(DType::F64)),
    ("torch", "HalfStorage", Name::TorchStorage(DType::F16)),
    ("torch", "BFloat16Storage", Name::TorchStorage(DType::Bf16)),
    ("torch", "LongStorage", Name::TorchStorage(DType::I64)),
    ("torch", "IntStorage", Name::TorchStorage(DType::I32)),
    ("torch", "ShortStorage", Name::TorchStorage(DType::I16)),
    ("torch", "CharStorage", Name::TorchStorage(DType::I8)),
    ("torch", "ByteStorage", Name::TorchStorage(DType::U8)),
    ("torch", "BoolStorage", Name::TorchStorage(DType::Bool)),
    ("decimal", "Decimal", Name::Decimal),
    ("datetime", "datetime", Name::Time(TimeName::DateTime)),
    ("datetime", "date", Name::Time(TimeName::Date)),
    ("datetime", "time", Name::Time(TimeName::Time)),
    ("datetime", "timedelta", Name::Time(TimeName::Span)),
    ("datetime", "timezone", Name::Time(TimeName::Offset)),
    ("zoneinfo", "ZoneInfo", Name::Time(TimeName::ZoneClass)),
    ("builtins", "getattr", Name::Time(TimeName::GetAttr)),
    ("__builtin__", "getattr", Name::Time(TimeName::GetAttr)),
];

/// The name, where it is in the table.
pub(super) fn find(module: &str, name: &str) -> Option<Name> {
    NAMES.iter().find(|known| (known.0, known.1) == (module, name)).map(|known| known.2)
}
