//! Preparation in tasks whose output lies in a store: what lies there is what would lie in a folder.

use std::path::Path;

use windrow::Kind;
use windrow::prep::{Prep, Tokenizing, plan};

use crate::written::{Place, files};

fn how() -> Tokenizing {
    Tokenizing { tokenizer: "bytes".to_string(), ..Tokenizing::default() }
}

#[test]
fn parts_in_a_store_are_those_of_a_folder() {
    let place = Place::new();
    let inputs = [place.path("texts")];
    let (url, options) = (Path::new("s3://bucket/parts"), place.options());
    let here =
        Prep::open(&plan(&inputs, &place.path("here/parts"), &how(), 3000, &options).unwrap(), &options)
            .unwrap();
    let job = plan(&inputs, url, &how(), 3000, &options).unwrap();
    assert!(job.to_str().unwrap().starts_with("s3://bucket/parts/prep/"));
    let tasks = here.job().tasks;
    assert!(tasks > 4);
    here.tasks_of(0, 1, false).into_iter().for_each(|task| assert!(here.run(task, None, &()).unwrap()));
    // Two workers that do all of it at the same time.
    std::thread::scope(|scope| {
        for rank in 0..2 {
            let (job, options) = (&job, place.options());
            scope.spawn(move || {
                let prep = Prep::open(job, &options).unwrap();
                for task in prep.tasks_of(rank, 2, true) {
                    prep.run(task, Some(1), &()).unwrap();
                }
            });
        }
    });
    let prep = Prep::open(&job, &options).unwrap();
    assert_eq!(prep.status(&()).unwrap().done, tasks);
    let (far, near) = (prep.merge(&()).unwrap(), here.merge(&()).unwrap());
    assert_eq!((far.records, far.tokens, far.files), (near.records, near.tokens, near.files));
    let (mut there, mut want) = (files(&place.path("root/bucket/parts")), files(&place.path("here/parts")));
    // A job says where it is.
    let is_job = |name: &String, _: &mut Vec<u8>| !name.starts_with("prep/");
    there.retain(is_job);
    want.retain(is_job);
    assert_eq!(there.keys().collect::<Vec<_>>(), want.keys().collect::<Vec<_>>());
    assert!(there == want);
    // Joined from there to there.
    prep.join(Path::new("s3://bucket/joined"), false, &()).unwrap();
    here.join(&place.path("here/joined"), false, &()).unwrap();
    assert!(files(&place.path("root/bucket/joined")) == files(&place.path("here/joined")));
    // Other bytes in a part's place are found.
    let part = place.path("root/bucket/parts/parts/000001.len");
    let mut bytes = std::fs::read(&part).unwrap();
    bytes[0] ^= 1;
    std::fs::write(&part, bytes).unwrap();
    std::fs::remove_file(place.path("root/bucket/parts/parts/000001.json")).unwrap();
    let e = prep.run(1, None, &()).unwrap_err();
    assert!(
        e.kind() == Kind::Mismatch && format!("{e:#}").contains("s3://bucket/parts/parts/000001.len"),
        "{e}"
    );
}
