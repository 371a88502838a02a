//! Every dtype that both have arrives as it is; the others are refused by name.

use std::sync::Arc;

use candle_core::{DType as Candle, Device, Tensor};
use half::{bf16, f16};
use windrow::dev::collate::{Batch, Field};
use windrow::{DType, Kind};
use windrow_candle::ToCandle;

/// Two rows of three numbers.
fn batch(dtype: DType, bytes: &[u8]) -> Batch {
    let mut batch = Batch::new(Arc::new([Field::new("values", dtype, [3])]), 2, None).unwrap();
    batch.bytes_mut(0).copy_from_slice(bytes);
    batch
}

fn tensor<T: bytemuck::Pod>(dtype: DType, values: [T; 6]) -> Tensor {
    let tensor = batch(dtype, bytemuck::cast_slice(&values)).tensor("values", &Device::Cpu).unwrap();
    assert_eq!(tensor.dims(), [2, 3]);
    tensor
}

#[test]
fn numbers_of_every_shared_dtype_arrive_as_they_are() {
    macro_rules! check {
        ($($dtype:ident: $type:ty => $candle:ident, $values:expr;)+) => {$(
            let values: [$type; 6] = $values;
            let found = tensor(DType::$dtype, values);
            assert_eq!(found.dtype(), Candle::$candle);
            assert_eq!(found.flatten_all().unwrap().to_vec1::<$type>().unwrap(), values);
        )+};
    }
    check! {
        U8: u8 => U8, [0, 1, 2, 127, 128, u8::MAX];
        Bool: u8 => U8, [0, 1, 1, 0, 0, 1];
        U32: u32 => U32, [0, 1, 2, 3, 1 << 31, u32::MAX];
        I16: i16 => I16, [0, 1, -1, 300, i16::MIN, i16::MAX];
        I32: i32 => I32, [0, 1, -1, 70_000, i32::MIN, i32::MAX];
        I64: i64 => I64, [0, 1, -1, 1 << 40, i64::MIN, i64::MAX];
        F16: f16 => F16, [0.0, 1.5, -2.25, 65_504.0, 6.1e-5, 0.1].map(f16::from_f64);
        Bf16: bf16 => BF16, [0.0, 1.5, -2.25, 1e30, 1e-30, 0.1].map(bf16::from_f64);
        F32: f32 => F32, [0.0, 1.5, -2.25, f32::MAX, f32::MIN_POSITIVE, 0.1];
        F64: f64 => F64, [0.0, 1.5, -2.25, f64::MAX, f64::MIN_POSITIVE, 0.1];
    }
}

#[test]
fn dtypes_that_candle_has_not_are_refused_by_name_with_one_that_fits() {
    for (dtype, wider) in [(DType::I8, "I16"), (DType::U16, "U32"), (DType::U64, "I64")] {
        let error = batch(dtype, &vec![0; 6 * dtype.size()]).tensor("values", &Device::Cpu).unwrap_err();
        assert_eq!(error.kind(), Kind::Unsupported);
        let says = format!("field \"values\" holds {dtype}, which candle does not have");
        assert!(error.message().starts_with(&says), "{error}");
        let hint = error.hint_text().unwrap();
        assert!(hint.contains(&format!("with_dtype(DType::{wider})")), "{hint}");
    }
}

#[test]
fn an_unknown_name_is_answered_with_those_there_are() {
    let error = batch(DType::U8, &[0; 6]).tensor("labels", &Device::Cpu).unwrap_err();
    assert_eq!(error.kind(), Kind::NotFound);
    assert_eq!(format!("{error:#}"), "the batch has no field \"labels\"\n  hint: it has [\"values\"]");
}

#[test]
fn numbers_for_each_row_and_batches_without_rows_have_their_shapes() {
    let fields: Arc<[Field]> =
        Arc::new([Field::new("lengths", DType::I64, []), Field::new("codes", DType::U8, [4, 2])]);
    for rows in [0, 1, 5] {
        let tensors = Batch::new(fields.clone(), rows, None).unwrap().tensors(&Device::Cpu).unwrap();
        assert_eq!(tensors.len(), 2);
        assert_eq!(tensors["lengths"].dims(), [rows]);
        assert_eq!(tensors["codes"].dims(), [rows, 4, 2]);
    }
}

#[test]
fn every_view_of_tokens_gives_tensors() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("tokens.bin");
    windrow::prepare::dummy(&path, 1000, 5_000, 3, false).unwrap();
    let data = windrow::open(&path).unwrap();
    let views = [
        data.pack(64).unwrap(),
        data.records(64).unwrap(),
        data.crop(windrow::Crop::new(64).mode(windrow::Mode::Start)).unwrap(),
        data.bins(6_000).unwrap(),
    ];
    for view in views {
        let batch = view.batch(&[0], 0).unwrap();
        let tensors = batch.tensors(&Device::Cpu).unwrap();
        assert_eq!(tensors.len(), batch.fields().len());
    }
    let batch = data.pack(64).unwrap().batch(&[3, 1], 0).unwrap();
    let labels = batch.tensor("labels", &Device::Cpu).unwrap();
    assert_eq!(labels.flatten_all().unwrap().to_vec1::<i64>().unwrap(), batch.get::<i64>("labels").unwrap());
}
