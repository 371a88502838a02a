//! What a run does not start with, and what it says then.

use std::fs;

use crate::desk::Desk;

/// A desk whose folder of checkpoints holds those of a run of 10 steps.
fn stopped() -> Desk {
    let desk = Desk::new();
    desk.steps("-f small.yaml -d tokens --max-steps 10");
    desk
}

#[test]
fn another_model_is_refused_with_the_difference() {
    let desk = stopped();
    desk.configure("other.yaml", &[("hidden_size", "64"), ("rope_theta", "500.0")]);
    let says = desk.refusal(4, "-f other.yaml -d tokens --resume auto");
    assert!(says.contains("model.hidden_size is 32 in the checkpoint, 64 in the configuration"), "{says}");
    assert!(
        says.contains("model.rope_theta is 10000.0 in the checkpoint, 500.0 in the configuration"),
        "{says}"
    );
    assert!(!says.contains("num_layers"), "{says}");
    assert!(says.contains("step-00000010.safetensors"), "{says}");
    let says = desk.refusal(4, "-f small.yaml -d tokens --seq-len 16 --resume auto");
    assert!(says.contains("model.max_seq_len is 32 in the checkpoint, 16 in the configuration"), "{says}");
}

#[test]
fn other_data_or_another_order_is_refused() {
    let desk = stopped();
    let file = fs::read(desk.path("tokens/tokens.bin")).unwrap();
    fs::write(desk.path("copy.bin"), &file).unwrap();
    let wide: Vec<u8> = file.chunks(2).flat_map(|id| [id[0], id[1], 0, 0]).collect();
    fs::write(desk.path("wide.bin"), &wide).unwrap();
    fs::write(desk.path("short.bin"), &wide[..wide.len() / 2 / 4 * 4]).unwrap();
    for data in ["wide.bin", "short.bin"] {
        let says = desk.refusal(4, &format!("-f small.yaml -d {data} --resume auto"));
        assert!(says.contains("the state has source=tokens:1:"), "{says}");
        assert!(says.contains("step-00000010.safetensors"), "{says}");
    }
    let says = desk.refusal(4, "-f small.yaml -d tokens --seed 1 --resume auto");
    assert!(says.contains("the state has seed 0, this loader has seed 1"), "{says}");
}

#[test]
fn ids_beyond_the_vocabulary_are_refused_with_their_place() {
    let desk = Desk::new();
    let ids: Vec<u8> =
        (0..1000u32).map(|i| if i == 700 { 257 } else { i % 257 }).flat_map(u32::to_le_bytes).collect();
    fs::write(desk.path("ids.bin"), ids).unwrap();
    let says = desk.refusal(3, "-f small.yaml -d ids.bin");
    assert!(says.contains("id 257 at value 700 is outside the vocabulary of 257 IDs"), "{says}");
    assert!(says.contains("ids.bin (record 0, byte 2800)"), "{says}");
}

#[test]
fn a_new_run_does_not_mix_with_an_old_one() {
    let desk = stopped();
    let says = desk.refusal(1, "-f small.yaml -d tokens");
    assert!(says.contains("an earlier run left its checkpoints here"), "{says}");
    assert!(says.contains("--resume auto"), "{says}");
}

#[test]
fn a_loss_that_is_no_number_ends_the_run_and_reaches_no_checkpoint() {
    let desk = Desk::new();
    desk.configure("wild.yaml", &[("learning_rate", "1e30"), ("save_interval", "1")]);
    let says = desk.refusal(1, "-f wild.yaml -d tokens");
    assert!(says.contains("step 2 has loss"), "{says}");
    assert!(says.contains("at: trainer.learning_rate"), "{says}");
    assert_eq!(desk.checkpoints(), ["step-00000001.safetensors"]);
}

#[test]
fn two_runs_do_not_write_to_one_folder() {
    let desk = Desk::new();
    let mut child = desk.start("-f small.yaml -d tokens");
    while desk.checkpoints().is_empty() {
        assert!(child.try_wait().unwrap().is_none());
    }
    let says = desk.refusal(1, "-f small.yaml -d tokens --resume auto");
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(says.contains("another run writes its checkpoints here"), "{says}");
}

#[test]
fn a_damaged_checkpoint_is_named_and_an_earlier_one_serves() {
    let desk = stopped();
    let newest = desk.path("checkpoints/step-00000010.safetensors");
    let whole = fs::read(&newest).unwrap();
    let header = u64::from_le_bytes(whole[..8].try_into().unwrap()) as usize;
    let false_size = [&(u64::MAX / 2).to_le_bytes()[..], &whole[8..]].concat();
    let renamed = String::from_utf8_lossy(&whole[..8 + header]).replace("weights.head", "weights.hood");
    let renamed = [&whole[..8], &renamed.as_bytes()[renamed.len() - header..], &whole[8 + header..]].concat();
    let other = fs::read(desk.path("tokens/tokens.bin")).unwrap();
    let damaged = [&whole[..whole.len() - 1], &whole[..header], &[], &false_size, &renamed, &other];
    for bytes in damaged {
        fs::write(&newest, bytes).unwrap();
        let says = desk.refusal(3, "-f small.yaml -d tokens --resume auto");
        assert!(says.contains("this is no whole checkpoint"), "{says}");
        assert!(says.contains("step-00000010.safetensors"), "{says}");
        assert!(says.contains("--resume PATH"), "{says}");
    }
    let earlier = "-f small.yaml -d tokens --max-steps 7 --resume checkpoints/step-00000005.safetensors";
    assert_eq!(desk.steps(earlier).iter().map(|step| step.0).collect::<Vec<_>>(), [6, 7]);
    let says = desk.refusal(1, "-f small.yaml -d tokens --resume nowhere.safetensors");
    assert!(says.contains("nowhere.safetensors"), "{says}");
}
