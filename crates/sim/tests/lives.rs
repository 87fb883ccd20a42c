//! Random lives: what is drawn, and what becomes of it.
//!
//! `NODEMOLT_LIVES=200 NODEMOLT_FIRST=1000` lives more of them, from another seed on.

use nodemolt_sim::Scenario;
use nodemolt_sim::life::{Life, Report, Tally};

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
        assert_eq!(life, Life::draw(seed), "seed {seed} gives two lives");
    }
}

#[test]
fn no_life_breaks_a_law() {
    let (first, lives) = (number("NODEMOLT_FIRST", 0), number("NODEMOLT_LIVES", 3));
    let mut tally = Tally::default();
    let mut told = Vec::new();
    for seed in first..first + lives {
        let report = live(seed);
        println!("{}", report.line());
        if !report.violations.is_empty() {
            told.push(report.complaint());
        }
        tally.add(&report);
    }
    println!("{tally}");
    assert!(told.is_empty(), "{}", told.join("\n"));
}

#[test]
fn the_same_seed_gives_the_same_life() {
    assert_eq!(live(1), live(1));
}

fn live(seed: u64) -> Report {
    Life::run(seed).unwrap_or_else(|it| panic!("seed {seed}: {it}"))
}

fn number(variable: &str, usual: u64) -> u64 {
    std::env::var(variable).ok().and_then(|it| it.parse().ok()).unwrap_or(usual)
}
