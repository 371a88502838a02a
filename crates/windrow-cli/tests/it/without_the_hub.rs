//! What a program that was built without the hub says.

use crate::program::Desk;

#[test]
fn download_says_how_to_build_it() {
    let desk = Desk::new();
    let ran = desk.windrow("download some/data --json");
    assert_eq!(ran.json()["error"]["kind"], "unsupported");
    assert!(ran.failed(1).contains("--features hub"));
    assert!(desk.tree("data").is_empty());
}
