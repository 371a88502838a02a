//! What a run does: learns, logs, counts epochs, keeps checkpoints.

use crate::desk::{Desk, steps};

#[test]
fn the_model_learns_the_corpus() {
    let desk = Desk::new();
    let losses: Vec<f64> = desk
        .steps("-f small.yaml -d tokens --max-steps 60")
        .iter()
        .map(|step| step.1.parse().unwrap())
        .collect();
    let mean = |losses: &[f64]| losses.iter().sum::<f64>() / losses.len() as f64;
    // 257 ids that are equally likely have ln 257 = 5.55 nats; the letters of English alone have about 3.
    assert!((mean(&losses[..2]) - 5.55).abs() < 0.1, "{losses:?}");
    assert!(mean(&losses[55..]) < 3.6, "{losses:?}");
}

#[test]
fn options_stand_in_for_the_configuration_and_old_checkpoints_go() {
    let desk = Desk::new();
    desk.configure("sparse.yaml", &[("log_interval", "4"), ("max_steps", "100")]);
    let line = "train -f sparse.yaml -d tokens/tokens.bin --headless --batch-size 2 --grad-accum 3 --seq-len 16 \
                --max-steps 22 --max-checkpoints 2 --checkpoint-dir checkpoints";
    let logged: Vec<u64> = desk.steps(line).iter().map(|step| step.0).collect();
    assert_eq!(logged, [4, 8, 12, 16, 20]);
    // After 5, 10, 15, 20, and at the end.
    assert_eq!(desk.checkpoints(), ["step-00000020.safetensors", "step-00000022.safetensors"]);
    assert_eq!(desk.steps(&format!("{line} --resume auto")), []);
}

#[test]
fn accumulated_parts_are_the_step_of_one_large_batch() {
    let desk = Desk::new();
    let losses = ["--batch-size 6 --grad-accum 1", "--batch-size 2 --grad-accum 3"].map(|parts| {
        desk.forget();
        let steps = desk.steps(&format!("-f small.yaml -d tokens --max-steps 3 {parts}"));
        steps.iter().map(|step| step.1.parse::<f64>().unwrap()).collect::<Vec<_>>()
    });
    for (whole, parts) in losses[0].iter().zip(&losses[1]) {
        assert!((whole - parts).abs() < 1e-4, "{losses:?}");
    }
}

#[test]
fn epochs_end_the_run() {
    let desk = Desk::new();
    let ids: Vec<u8> = (0..641u32).map(|i| i % 257).flat_map(u32::to_le_bytes).collect();
    std::fs::write(desk.path("ids.bin"), ids).unwrap();
    // 20 samples of 32, 8 a step: 2 steps an epoch.
    let epochs: Vec<u64> = desk.steps("-f small.yaml -d ids.bin").iter().map(|step| step.3).collect();
    assert_eq!(epochs, [0, 0, 1, 1]);
}

#[test]
fn without_data_the_ids_are_random_and_the_same_for_a_seed() {
    let desk = Desk::new();
    let runs = ["0", "0", "1"].map(|seed| {
        desk.forget();
        desk.steps(&format!("-f small.yaml --max-steps 3 --seed {seed}"))
    });
    assert_eq!(runs[0], runs[1]);
    assert_ne!(runs[0], runs[2]);
}

#[test]
fn a_missing_key_is_named_with_its_file() {
    let desk = Desk::new();
    let text = std::fs::read_to_string(desk.path("small.yaml")).unwrap().replace("  num_heads:", "  heads:");
    std::fs::write(desk.path("headless.yaml"), text).unwrap();
    let says = desk.refusal(1, "-f headless.yaml");
    assert!(says.contains("model.num_heads is missing"), "{says}");
    assert!(says.contains("headless.yaml (model.num_heads)"), "{says}");
    assert!(steps("").is_empty());
}
