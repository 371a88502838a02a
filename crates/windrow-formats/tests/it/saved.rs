//! What `torch.save` wrote, as a tree of values: a model's tensors with what stands beside them.

use std::path::Path;
use std::sync::Arc;

use windrow_core::store::{Local, Memory, Object, Store};
use windrow_core::{DType, Kind, Result};
use windrow_pickle::{Saved, SavedTensor};

fn testdata(name: &str) -> Arc<dyn Object> {
    Local::new(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata")).open(name).unwrap()
}

fn read(bytes: Vec<u8>) -> Result<Saved> {
    Saved::read(Memory::new().with("a.pth", bytes).open("a.pth")?.as_ref())
}

fn tensor<'a>(saved: &'a Saved, name: &str) -> &'a SavedTensor {
    match saved.get(name) {
        Some(Saved::Tensor(tensor)) => tensor,
        other => panic!("{name}: {other:?}"),
    }
}

#[test]
fn a_model_is_its_tensors_and_what_stands_beside_them() {
    let object = testdata("dac/small.pth");
    let saved = Saved::read(object.as_ref()).unwrap();
    let kwargs = saved.get("metadata").and_then(|metadata| metadata.get("kwargs")).unwrap();
    assert_eq!(kwargs.get("encoder_dim"), Some(&Saved::Int(6)));
    assert_eq!(kwargs.get("encoder_rates"), Some(&Saved::List([2, 3, 4].map(Saved::Int).to_vec())));
    assert_eq!(kwargs.get("quantizer_dropout"), Some(&Saved::Bool(false)));
    assert_eq!(kwargs.get("nothing"), None);
    let tensors = saved.get("state_dict").unwrap();
    let first = tensor(tensors, "encoder.block.0.weight_v");
    assert_eq!((first.dtype(), first.shape(), first.len()), (DType::F32, &[6, 1, 7][..], 42));
    let values = first.to_f32(object.as_ref()).unwrap();
    // Drawn with a deviation of 0.02, cut at 2.
    assert!(
        values.len() == 42 && values.iter().all(|value| value.abs() <= 2.0 && *value != 0.0),
        "{values:?}"
    );
}

#[test]
fn the_older_stream_is_read_too() {
    let object = testdata("dac/older.pth");
    let saved = Saved::read(object.as_ref()).unwrap();
    let alpha = tensor(&saved, "encoder.block.3.alpha");
    assert_eq!(alpha.shape(), [1, 16, 1]);
    let values = alpha.to_f32(object.as_ref()).unwrap();
    assert!(values.iter().all(|value| (0.2..3.0).contains(value)), "{values:?}");
}

#[test]
fn a_tensor_alone_is_read_in_the_order_of_its_dimensions() {
    let folder = "golden/4_dia/preencoded/encoded_audio";
    let object = testdata(&format!("{folder}/float.pt"));
    let Saved::Tensor(found) = Saved::read(object.as_ref()).unwrap() else { panic!("no tensor") };
    let values = found.to_f32(object.as_ref()).unwrap();
    assert_eq!(values.len() as u64, found.shape().iter().product::<u64>());
    assert_eq!(values[..4], [770.75, 110.75, 487.75, 118.75]);
    assert_eq!((found.shape(), values[18]), (&[4, 18][..], 100.75));
    let whole = testdata(&format!("{folder}/strided.pt"));
    let Saved::Tensor(found) = Saved::read(whole.as_ref()).unwrap() else { panic!("no tensor") };
    assert_eq!(found.to_f32(whole.as_ref()).unwrap_err().kind(), Kind::Unsupported);
}

#[test]
fn what_is_more_than_data_or_less_than_a_file_is_refused() {
    assert_eq!(read(b"\x80\x02cos\nsystem\n.".to_vec()).unwrap_err().kind(), Kind::Corrupt);
    let stream =
        std::fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/dac/older.pth")).unwrap();
    let begin = [&stream[..15], b"\x80\x02M\xe9\x03.\x80\x02}."].concat();
    let program = [&begin[..], b"\x80\x02cos\nsystem\n(tR."].concat();
    let error = read(program).unwrap_err();
    assert_eq!(error.kind(), Kind::Unsupported);
    assert!(format!("{error:#}").contains("os.system") && format!("{error:#}").contains("a.pth"), "{error}");
    // Lists of lists of lists: cheap to write, without end to walk.
    let mut laughs = [&begin[..], b"\x80\x02]q\x00"].concat();
    for i in 0..30u8 {
        laughs.extend([b']', b'q', i + 1]);
        laughs.extend([b'h', i, b'a'].repeat(9));
    }
    laughs.extend(b".\x80\x02].");
    let error = read(laughs).unwrap_err();
    assert!(format!("{error:#}").contains("makes more than"), "{error}");
    // A list that lies in itself.
    let deep = [&begin[..], b"\x80\x02]q\x00h\x00a.\x80\x02]."].concat();
    let error = read(deep).unwrap_err();
    assert!(format!("{error:#}").contains("more than 32 deep"), "{error}");
}
