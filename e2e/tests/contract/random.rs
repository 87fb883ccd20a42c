//! Five hundred random sequences of acts.

use futures_util::{StreamExt as _, stream};
use tokio::task::LocalSet;

use crate::acts::{Act, Of, Other, Which};
use crate::pair::Pair;

const SEQUENCES: u32 = 500;
const ACTS_MIN: u64 = 20;
/// So many are under way at once, each with names of its own.
const AT_ONCE: usize = 16;
/// Of those that differ so many are shown.
const SHOWN: usize = 10;

#[tokio::test]
async fn five_hundred_random_sequences_are_the_same_on_both() {
    let chosen = std::env::var("NODEMOLT_CONTRACT_SEED").ok().and_then(|it| it.parse().ok());
    let seeds = chosen.map_or(0..SEQUENCES, |it: u32| it..it + 1);
    LocalSet::new()
        .run_until(async {
            let pair = Pair::start().await;
            let pair = &pair;
            let mut acts_run = 0_usize;
            let mut all = stream::iter(seeds)
                .map(|seed| async move {
                    let acts = sequence(seed);
                    (seed, pair.run(&format!("a{seed:07}"), &acts).await)
                })
                .buffer_unordered(AT_ONCE);
            let (mut equal, mut wrong) = (0, Vec::new());
            while let Some((seed, answers)) = all.next().await {
                match answers {
                    Ok(answers) => {
                        acts_run += answers.len();
                        equal += 1;
                    }
                    Err(how) => wrong.push(format!("NODEMOLT_CONTRACT_SEED={seed}: {how}")),
                }
            }
            if let Err(how) = pair.compare_ledger().await {
                wrong.push(how);
            }
            println!("contract: {equal} random sequences, {acts_run} acts, equal on both");
            wrong.sort_by_key(String::len);
            let count = wrong.len();
            wrong.truncate(SHOWN);
            assert!(count == 0, "{count} differ:\n{}", wrong.join("\n"));
        })
        .await;
}

struct Dice(u64);

impl Dice {
    /// Xorshift: the same on every machine.
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }

    fn small(&mut self, end: u64) -> u8 {
        u8::try_from(self.below(end)).unwrap()
    }

    fn of(&mut self) -> Of {
        Of::ALL[usize::from(self.small(4))]
    }

    fn other(&mut self) -> Other {
        Other::ALL[usize::from(self.small(7))]
    }

    fn which(&mut self) -> Which {
        match self.below(6) {
            0 => Which::AsMade,
            1 => Which::Another,
            _ => Which::Now,
        }
    }
}

fn sequence(seed: u32) -> Vec<Act> {
    let mut dice =
        Dice(0x9e37_79b9_7f4a_7c15 ^ (u64::from(seed) + 1).wrapping_mul(0x2545_f491_4f6c_dd1d));
    for _ in 0..8 {
        dice.next();
    }
    let mut acts = vec![Act::MakePool, Act::MakeNode(0), Act::MakeClaim(0)];
    let length = ACTS_MIN + dice.below(10);
    while (acts.len() as u64) < length {
        let (number, which) = (dice.small(2), dice.which());
        acts.push(match dice.below(39) {
            0 | 1 => Act::MakeClaim(number),
            2 => Act::Attempt(number, which, 1 + dice.small(3)),
            3 | 4 => Act::TellClaim(number, which, dice.small(3)),
            5 => Act::EndClaim(number, which),
            6 => Act::ReleaseClaim(number, which),
            7 => Act::MakeNode(number),
            8 => Act::TouchNode(number),
            9 => Act::Register(number, which),
            10 | 11 => Act::Cordon(number, which, dice.small(2)),
            12 => Act::Uncordon(number, which, dice.small(2)),
            13 => Act::EndNode(number, which),
            14 => Act::ReleaseNode(number, which),
            15 | 16 => Act::MakePod(number, dice.below(4) > 0, dice.below(4) > 0),
            17 | 18 => Act::RunPod(number, dice.below(3) > 0),
            19 if number == 0 => Act::FinishPod(number),
            19 => Act::FailPod(number),
            20 => Act::KillPod(number),
            // Of one that is pending the real server says so only after ten seconds: there is a named case.
            21 | 22 => Act::Evict(number, if which == Which::Another { Which::Now } else { which }),
            23 => Act::EndPod(number, which),
            24 => Act::MakePdb(number, dice.below(3) == 0),
            25 => {
                let allowed = i32::from(dice.small(3)) - i32::from(dice.below(9) == 0);
                Act::JudgePdb(number, allowed, i32::from(dice.small(3)), i32::from(dice.small(3)))
            }
            26 => match dice.below(3) {
                0 => Act::DropPdb(number),
                _ => Act::TouchPdb(number),
            },
            27 | 28 => Act::Record(number, which, dice.small(16)),
            29 => match dice.below(3) {
                0 => Act::Forget(number, which),
                _ => Act::Records,
            },
            30 => Act::Ledger(dice.small(7)),
            31 => Act::Remember(number, dice.small(8)),
            32 => Act::Lead(number, i64::from(dice.small(60))),
            33 => Act::MakeSubject(dice.of()),
            34 => match dice.below(4) {
                0 => Act::TouchSubject(dice.of()),
                1 => Act::Complain(dice.of(), dice.below(4) > 0),
                _ => Act::TellSubject(dice.of(), dice.below(4) > 0, dice.small(4)),
            },
            35 => Act::TellSubject(dice.of(), dice.below(4) > 0, dice.small(4)),
            36 => Act::MakeOther(dice.other()),
            37 => {
                let other = dice.other();
                // In use or not, these go when a controller lets them: the rig runs none.
                let stays = matches!(other, Other::Volume | Other::VolumeClaim | Other::Namespace);
                if stays || dice.below(2) == 0 {
                    Act::TouchOther(other)
                } else {
                    Act::EndOther(other)
                }
            }
            _ => Act::TellPool(dice.below(4) > 0, dice.small(4)),
        });
    }
    acts
}
