//! Several processes of one machine that read the same objects at once: what one fetches the others do not ask for.

use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::time::{Duration, Instant};

use windrow_core::store::ahead;
use windrow_remote::Options;

use crate::server::{Answer, Server};
use crate::{content, open, options, read};

const SIZE: usize = 12 << 20;
const PIECE: usize = 40_000;
const URL: &str = "WINDROW_TEST_URL";
const CACHE: &str = "WINDROW_TEST_CACHE";
const SEED: &str = "WINDROW_TEST_SEED";
const TIMEOUT: &str = "WINDROW_TEST_TIMEOUT";

/// What the tests below start; nothing by itself.
#[test]
fn one_of_several_readers() {
    let Ok(url) = std::env::var(URL) else { return };
    let number = |name: &str| std::env::var(name).unwrap().parse::<u64>().unwrap();
    let options = Options {
        cache: Some(std::env::var_os(CACHE).unwrap().into()),
        cache_limit: Some(u64::MAX),
        timeout: Duration::from_secs(number(TIMEOUT)),
        ..options()
    };
    let whole = content(SIZE);
    let (_, object) = open(&url, "x", options);
    println!("ready");
    std::io::stdin().read_exact(&mut [0]).unwrap();
    let mut places: Vec<usize> = (0..SIZE).step_by(PIECE).collect();
    fastrand::Rng::with_seed(number(SEED)).shuffle(&mut places);
    for places in places.chunks(64) {
        ahead::gather(|| {
            places.iter().for_each(|&at| object.prefetch(at as u64, PIECE.min(SIZE - at) as u64))
        });
        for &at in places {
            let end = SIZE.min(at + PIECE);
            assert_eq!(read(object.as_ref(), at as u64, end - at).unwrap(), whole[at..end]);
        }
    }
}

fn start(server: &Server, cache: &Path, seed: u64, timeout: u64) -> Child {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "together::one_of_several_readers", "--nocapture"]);
    command
        .env(URL, &server.url)
        .env(CACHE, cache)
        .env(SEED, seed.to_string())
        .env(TIMEOUT, timeout.to_string());
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let said = BufReader::new(child.stdout.as_mut().unwrap()).lines().map_while(Result::ok);
    assert!(said.into_iter().any(|line| line.ends_with("ready")));
    child
}

fn go(child: &mut Child) {
    child.stdin.as_mut().unwrap().write_all(&[1]).unwrap();
}

fn end(mut child: Child) {
    assert!(child.wait().unwrap().success());
}

fn bytes(server: &Server) -> u64 {
    server.asked().iter().filter_map(|asked| asked.range).map(|(start, end)| end - start).sum()
}

#[test]
fn processes_that_start_together_fetch_the_bytes_once() {
    let server = Server::new([("x", content(SIZE))]);
    server.script(|_| Answer { wait: Duration::from_millis(10), ..Answer::default() });
    // In the same order, and each in its own.
    for seeds in [[1, 1, 1, 1], [1, 2, 3, 4]] {
        let cache = tempfile::tempdir().unwrap();
        let mut children: Vec<Child> = seeds.map(|seed| start(&server, cache.path(), seed, 60)).into();
        server.asked();
        children.iter_mut().for_each(go);
        children.into_iter().for_each(end);
        let fetched = bytes(&server);
        assert!(fetched as f64 <= 1.1 * SIZE as f64, "{seeds:?}: {fetched} bytes of {SIZE}");
    }
}

#[test]
fn what_a_killed_process_was_to_fetch_is_fetched_by_another_one() {
    let server = Server::new([("x", content(SIZE))]);
    let cache = tempfile::tempdir().unwrap();
    let mut killed = start(&server, cache.path(), 1, 60);
    let mut other = start(&server, cache.path(), 1, 60);
    // Nothing is answered that the first one asks for.
    let holds = Arc::new(AtomicBool::new(true));
    let (tell, told) = mpsc::channel();
    let (tell, held) = (Mutex::new(tell), holds.clone());
    server.script(move |_| {
        if held.load(Ordering::Relaxed) {
            tell.lock().unwrap().send(()).unwrap();
            return Answer { wait: Duration::from_secs(3600), ..Answer::default() };
        }
        Answer::default()
    });
    go(&mut killed);
    told.recv_timeout(Duration::from_secs(30)).unwrap();
    holds.store(false, Ordering::Relaxed);
    killed.kill().unwrap();
    killed.wait().unwrap();
    server.asked();
    go(&mut other);
    end(other);
    assert!(bytes(&server) as f64 <= 1.1 * SIZE as f64);
}

#[test]
fn a_process_that_is_stopped_keeps_nobody_waiting_for_long() {
    let server = Server::new([("x", content(SIZE))]);
    let cache = tempfile::tempdir().unwrap();
    let mut stopped = start(&server, cache.path(), 1, 3600);
    let mut other = start(&server, cache.path(), 1, 2);
    let (tell, told) = mpsc::channel();
    let tell = Mutex::new(Some(tell));
    server.script(move |_| match tell.lock().unwrap().take() {
        Some(tell) => {
            tell.send(()).unwrap();
            Answer { wait: Duration::from_secs(3600), ..Answer::default() }
        }
        None => Answer::default(),
    });
    go(&mut stopped);
    told.recv_timeout(Duration::from_secs(30)).unwrap();
    let begun = Instant::now();
    go(&mut other);
    end(other);
    assert!(begun.elapsed() < Duration::from_secs(60));
    stopped.kill().unwrap();
    stopped.wait().unwrap();
}
