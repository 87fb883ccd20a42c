//! Does `explain` name what really holds a node?
//!
//! `seed → a small world with one thing wrong in it → the story of the node that it holds`
//!
//! Whoever draws the world knows what was put into it: kind, namespace and name. The story has to name
//! just that, and nothing that was neither put there nor can be seen in the API server's own objects. The
//! stories are those that `nodemolt explain` prints.

#![allow(clippy::unwrap_used, reason = "a broken fixture should stop the test")]

#[path = "explain/draft.rs"]
mod draft;
#[path = "explain/kinds.rs"]
mod wrong;
#[path = "explain/oracle.rs"]
mod oracle;
#[path = "explain/rooms.rs"]
mod rooms;

use std::collections::BTreeMap;

use draft::Draft;
use nodemolt_sim::world::last_lines;

/// Nodes that are held, over all kinds.
const BLOCKED_MIN: usize = 500;

/// Of each kind.
const WORLDS_OF_A_KIND: u64 = 20;
const NODES_OF_A_KIND: usize = 15;

#[test]
fn the_story_of_a_node_names_what_was_put_in_its_way() {
    let mut blocked: BTreeMap<&str, (u64, usize, u128)> = BTreeMap::new();
    let mut wrong_stories = Vec::new();
    for (number, kind) in (0..).zip(wrong::ALL) {
        for round in 0..WORLDS_OF_A_KIND {
            let seed = number * 1000 + round;
            let mut draft = Draft::new(seed);
            let injected = (kind.inject)(&mut draft);
            let begun = std::time::Instant::now();
            let mut world = draft.begin();
            let injected = injected.live(&mut world);
            let (nodes, wrong) = oracle::check(&world, &injected);
            let counted = blocked.entry(kind.name).or_default();
            *counted = (counted.0 + 1, counted.1 + nodes, counted.2 + begun.elapsed().as_millis());
            if !wrong.is_empty() {
                let told = wrong.join("\n");
                let last = last_lines(&world, 12);
                wrong_stories.push(format!("── {}, seed {seed}: {told}\n{last}", kind.name));
            }
        }
    }
    println!("{:<46} {:>6} {:>6} {:>9}", "kind", "worlds", "nodes", "took");
    for (kind, (worlds, nodes, took)) in &blocked {
        println!("{kind:<46} {worlds:>6} {nodes:>6} {took:>6} ms");
    }
    let all: usize = blocked.values().map(|it| it.1).sum();
    println!("{:<46} {:>6} {all:>6}", "all", blocked.values().map(|it| it.0).sum::<u64>());
    // One of each kind is enough to read.
    let mut told = std::collections::BTreeSet::new();
    let first = wrong_stories.iter().filter(|it| told.insert(it.split(',').next()));
    let first: Vec<String> = first.cloned().collect();
    let count = wrong_stories.len();
    assert!(
        wrong_stories.is_empty(),
        "{count} stories are wrong; the first:\n{}",
        first.join("\n")
    );
    let missing: Vec<&&str> =
        blocked.iter().filter(|(_, it)| it.1 < NODES_OF_A_KIND).map(|(kind, _)| kind).collect();
    assert!(missing.is_empty(), "too few nodes were held by: {missing:?}");
    assert!(all >= BLOCKED_MIN, "only {all} nodes were held");
}
