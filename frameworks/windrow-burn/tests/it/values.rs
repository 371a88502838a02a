//! Every dtype arrives as it is, and a tensor on a device holds what the batch held.

use std::sync::Arc;

use burn_tensor::{BoolStore, DType as Burn, Device, Int, Tensor};
use half::{bf16, f16};
use windrow::dev::collate::{Batch, Field};
use windrow::{DType, Kind};
use windrow_burn::ToBurn;

/// Two rows of three numbers.
fn batch(dtype: DType, bytes: &[u8]) -> Batch {
    let mut batch = Batch::new(Arc::new([Field::new("values", dtype, [3])]), 2, None).unwrap();
    batch.bytes_mut(0).copy_from_slice(bytes);
    batch
}

#[test]
fn numbers_of_every_dtype_arrive_as_they_are() {
    macro_rules! check {
        ($($dtype:ident: $type:ty => $burn:expr, $values:expr;)+) => {$(
            let values: [$type; 6] = $values;
            let found = batch(DType::$dtype, bytemuck::cast_slice(&values)).tensor_data("values").unwrap();
            assert_eq!((found.shape().as_slice(), found.dtype()), (&[2, 3][..], $burn));
            assert_eq!(&found.bytes()[..], bytemuck::cast_slice::<$type, u8>(&values));
        )+};
    }
    check! {
        Bool: u8 => Burn::Bool(BoolStore::Native), [0, 1, 1, 0, 0, 1];
        U8: u8 => Burn::U8, [0, 1, 2, 127, 128, u8::MAX];
        U16: u16 => Burn::U16, [0, 1, 2, 127, 128, u16::MAX];
        U32: u32 => Burn::U32, [0, 1, 2, 3, 1 << 31, u32::MAX];
        U64: u64 => Burn::U64, [0, 1, 2, 3, 1 << 63, u64::MAX];
        I8: i8 => Burn::I8, [0, 1, -1, 100, i8::MIN, i8::MAX];
        I16: i16 => Burn::I16, [0, 1, -1, 300, i16::MIN, i16::MAX];
        I32: i32 => Burn::I32, [0, 1, -1, 70_000, i32::MIN, i32::MAX];
        I64: i64 => Burn::I64, [0, 1, -1, 1 << 40, i64::MIN, i64::MAX];
        F16: f16 => Burn::F16, [0.0, 1.5, -2.25, 65_504.0, 6.1e-5, 0.1].map(f16::from_f64);
        Bf16: bf16 => Burn::BF16, [0.0, 1.5, -2.25, 1e30, 1e-30, 0.1].map(bf16::from_f64);
        F32: f32 => Burn::F32, [0.0, 1.5, -2.25, f32::MAX, f32::MIN_POSITIVE, 0.1];
        F64: f64 => Burn::F64, [0.0, 1.5, -2.25, f64::MAX, f64::MIN_POSITIVE, 0.1];
    }
}

#[test]
fn a_tensor_on_a_device_holds_what_the_batch_held() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("tokens.bin");
    windrow::prepare::dummy(&path, 1000, 5_000, 3, false).unwrap();
    let batch = windrow::open(&path).unwrap().pack(64).unwrap().batch(&[3, 1], 0).unwrap();
    let device = Device::default();
    let labels = Tensor::<2, Int>::from_data(batch.tensor_data("labels").unwrap(), (&device, Burn::I64));
    assert_eq!(labels.dims(), [2, 64]);
    let held = labels.into_data();
    assert_eq!(bytemuck::pod_collect_to_vec::<u8, i64>(held.bytes()), batch.get::<i64>("labels").unwrap());
}

#[test]
fn an_unknown_name_is_answered_with_those_there_are() {
    let error = batch(DType::U8, &[0; 6]).tensor_data("labels").unwrap_err();
    assert_eq!(error.kind(), Kind::NotFound);
    assert_eq!(format!("{error:#}"), "the batch has no field \"labels\"\n  hint: it has [\"values\"]");
}

#[test]
fn numbers_for_each_row_and_batches_without_rows_have_their_shapes() {
    let fields: Arc<[Field]> =
        Arc::new([Field::new("lengths", DType::I64, []), Field::new("codes", DType::U8, [4, 2])]);
    for rows in [0, 1, 5] {
        let batch = Batch::new(fields.clone(), rows, None).unwrap();
        assert_eq!(batch.tensor_data("lengths").unwrap().shape().as_slice(), [rows]);
        assert_eq!(batch.tensor_data("codes").unwrap().shape().as_slice(), [rows, 4, 2]);
    }
}
