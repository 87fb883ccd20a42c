//! Random lives: what is drawn, and what becomes of it.
//!
//! `NODEMOLT_LIVES=20000 NODEMOLT_FIRST=1000` lives more of them, from another seed on.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use jiff::{SignedDuration, Timestamp};
use nodemolt_sim::faults::{Side, Writing};
use nodemolt_sim::laws::{Law, same_life};
use nodemolt_sim::life::{Life, Report, Tally};
use nodemolt_sim::{Act, Scenario};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// As many as fit into five minutes on two processors.
const LIVES: u64 = 2_000;

/// Fewer than this, asked for by hand, are for looking at: what is rare may be missing among them.
const LIVES_THAT_COUNT: usize = 2_000;

const NODES_MEDIAN_MIN: usize = 8;
const FAULTS_MEDIAN_MIN: usize = 3;
const COMPLETED_PERCENT_MIN: usize = 90;

/// In the others some node waits for people: a budget that never allows, a pod that nobody would start again.
const MATCHED_PERCENT_MIN: usize = 35;

/// In so many lives each law must have had something to say.
const PREMISES_MIN: usize = 50;

/// In so many lives somebody must have crashed or stood still at each kind of write, on each side of it.
const WRITES_MIN: usize = 10;

/// How many are lived twice.
const TWICE: u64 = 100;

/// So many complaints are printed in full.
const COMPLAINTS_MAX: usize = 10;

#[test]
fn every_life_that_is_drawn_can_begin() {
    for seed in 0..100 {
        let life = Life::draw(seed);
        if let Err(problems) = Scenario::read("life", &life.world.text) {
            let told: Vec<String> = problems.iter().map(ToString::to_string).collect();
            panic!("seed {seed}: {}\n{}", told.join("\n"), life.world.text);
        }
        assert!((8..=14).contains(&life.world.nodes.len()), "seed {seed}");
        assert!(life.faults() >= 3, "seed {seed} has {} faults", life.faults());
        for (_, act) in &life.script {
            let written = act.to_string();
            assert_eq!(written.parse::<Act>().as_ref(), Ok(act), "seed {seed}: `{written}`");
        }
        assert_eq!(life, Life::draw(seed), "seed {seed} gives two lives");
    }
}

/// Nobody can look into what is not told: which seed, how to see it again, and the last steps.
#[test]
fn a_life_that_breaks_a_law_or_breaks_off_says_how_to_see_it_again() {
    let mut life = Life::draw(7);
    life.world.expected.insert("nodemolt.dev/general".to_owned(), BTreeSet::new());
    let report = life.live().unwrap_or_else(|it| panic!("{it}"));
    assert!(report.violations.iter().any(|it| it.law == Law::Settling), "{}", report.complaint());
    told_in_full(&report.complaint());

    let mut life = Life::draw(7);
    let wrong = "delete unicorn web-0".parse().unwrap_or_else(|it| panic!("{it}"));
    life.script.push((SignedDuration::from_mins(49), wrong));
    let told = life.live().map(|it| it.line()).unwrap_err();
    assert!(told.contains("`unicorn` is no kind"), "{told}");
    told_in_full(&told);
}

fn told_in_full(complaint: &str) {
    assert!(complaint.contains("nodemolt sim replay --seed 7"), "{complaint}");
    let events = complaint.lines().filter(|it| it.trim_start().starts_with("2026-")).count();
    assert!(events >= 20, "{complaint}");
}

#[test]
fn no_life_breaks_a_law_and_each_is_the_same_when_it_is_lived_again() {
    let (first, lives) = (number("NODEMOLT_FIRST", 0), number("NODEMOLT_LIVES", LIVES));
    let mut seeds: Vec<u64> = (first..first + lives).collect();
    seeds.extend(first..first + lives.min(TWICE));
    let (begun, threads) = (Instant::now(), threads());
    let mut reports = live_all(&seeds);
    let seconds = begun.elapsed().as_secs_f64();
    let again = reports.split_off(reports.len() - usize::try_from(lives.min(TWICE)).unwrap_or(0));
    let mut tally = Tally::default();
    for report in &reports {
        if reports.len() < LIVES_THAT_COUNT {
            println!("{}", report.line());
        }
        tally.add(report);
    }
    for line in tally.to_string().lines() {
        println!("lives: {line}");
    }
    assert_same(&reports, &again);
    let steps = tally.steps + again.iter().map(|it| it.steps).sum::<u64>();
    #[expect(clippy::cast_precision_loss, reason = "steps are far fewer than 2^52")]
    let pace = steps as f64 / seconds;
    println!("lives: {seconds:.0} s on {threads} threads, {pace:.0} steps a second in all");

    let broken: Vec<&Report> = reports.iter().filter(|it| !it.violations.is_empty()).collect();
    let told: Vec<String> = broken.iter().take(COMPLAINTS_MAX).map(|it| it.complaint()).collect();
    let seeds: Vec<u64> = broken.iter().map(|it| it.seed).collect();
    assert!(broken.is_empty(), "lives that broke a law: {seeds:?}\n{}", told.join("\n"));
    if tally.lives >= LIVES_THAT_COUNT {
        assert_rich(&tally);
    }
}

/// The law of determinism: it takes two lives of one seed, on whatever thread each.
fn assert_same(once: &[Report], again: &[Report]) {
    for (one, other) in once.iter().zip(again) {
        let broken = same_life(one.seed, one.hash, other.hash, Timestamp::UNIX_EPOCH);
        assert!(broken.is_none(), "{}", broken.map(|it| it.to_string()).unwrap_or_default());
        assert_eq!(one, other);
    }
    let hashes: BTreeSet<u64> = once.iter().map(|it| it.hash).collect();
    assert_eq!(hashes.len(), once.len(), "two seeds gave one life");
    println!("lives: lived twice, with the same trace hash: {}", again.len());
}

/// Lives in which little happens prove little.
fn assert_rich(tally: &Tally) {
    assert!(tally.median_nodes() >= NODES_MEDIAN_MIN, "{} nodes", tally.median_nodes());
    assert!(tally.median_faults() >= FAULTS_MEDIAN_MIN, "{} faults", tally.median_faults());
    let completed = tally.completed * 100;
    assert!(completed >= tally.lives * COMPLETED_PERCENT_MIN, "{} replaced", tally.completed);
    let matched = tally.matched * 100;
    assert!(matched >= tally.lives * MATCHED_PERCENT_MIN, "{} end as expected", tally.matched);
    for law in Law::CHECKED.into_iter().filter(|it| *it != Law::Determinism) {
        let lives = tally.premises.get(&law).copied().unwrap_or(0);
        assert!(lives >= PREMISES_MIN, "{law}: its premise was true in {lives} lives only");
    }
    for (wrote, side) in Writing::ALL.into_iter().flat_map(|it| Side::ALL.map(|side| (it, side))) {
        let lives = tally.writes.get(&(wrote, side)).copied().unwrap_or(0);
        let (wrote, side) = (wrote.as_str(), side.as_str());
        assert!(lives >= WRITES_MIN, "{side} {wrote}: it struck in {lives} lives only");
    }
}

/// In the order of the seeds, on whatever thread: a world is on one, and knows of no other.
fn live_all(seeds: &[u64]) -> Vec<Report> {
    let next = AtomicUsize::new(0);
    let work = || {
        let mut lived = Vec::new();
        loop {
            let at = next.fetch_add(1, Ordering::Relaxed);
            let Some(seed) = seeds.get(at) else { return lived };
            lived.push((at, live(*seed)));
        }
    };
    let mut all: Vec<(usize, Report)> = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..threads()).map(|_| scope.spawn(work)).collect();
        workers.into_iter().flat_map(|it| it.join().unwrap_or_else(panic_on)).collect()
    });
    all.sort_by_key(|(at, _)| *at);
    all.into_iter().map(|(_, report)| report).collect()
}

/// What a thread died of is what the test dies of.
fn panic_on<T>(cause: Box<dyn std::any::Any + Send>) -> T {
    std::panic::resume_unwind(cause)
}

fn live(seed: u64) -> Report {
    Life::run(seed).unwrap_or_else(|it| panic!("seed {seed}: {it}"))
}

fn threads() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

fn number(variable: &str, usual: u64) -> u64 {
    std::env::var(variable).ok().and_then(|it| it.parse().ok()).unwrap_or(usual)
}
