//! Random lives: what is drawn, and what becomes of it.

use nodemolt_sim::Scenario;
use nodemolt_sim::life::{Life, Tally};

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
    let lives = std::env::var("NODEMOLT_LIVES").ok().and_then(|it| it.parse().ok()).unwrap_or(5);
    let first = std::env::var("NODEMOLT_FIRST").ok().and_then(|it| it.parse().ok()).unwrap_or(0);
    let mut tally = Tally::default();
    let mut told = Vec::new();
    for seed in first..first + lives {
        let report = Life::run(seed).unwrap_or_else(|it| panic!("seed {seed}: {it}"));
        if !report.violations.is_empty() {
            told.push(report.complaint());
        }
        println!(
            "seed {seed}: {} nodes, {} faults, {} replaced, settled after {:?}, {} steps, {} violations",
            report.nodes,
            report.faults,
            report.completed,
            report.settled_after,
            report.steps,
            report.violations.len()
        );
        tally.add(&report);
    }
    println!("{tally}");
    assert!(told.is_empty(), "{}", told.join("\n"));
}
