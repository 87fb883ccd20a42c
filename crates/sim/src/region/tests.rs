//! Does EC2 answer here as it does elsewhere?

use super::*;
use crate::scenario::Scenario;

fn region() -> Region {
    let text = "
apiVersion: nodemolt.dev/sim
kind: Simulation
start: 2026-08-01
";
    let scenario = Scenario::read("test", text).unwrap();
    Region::new(&scenario.simulation, Trace::default())
}
