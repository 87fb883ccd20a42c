//! What do publishers do in a random life?
//!
//! `images at the start, acts on images → what nodes may run in the end`
//!
//! A life without any of this shows one image that follows another. Here images are taken back, are bad,
//! are somebody else's under the same name, are too young, and parameters say what they should not. What is
//! expected in the end is part of the draw: where a good release follows, that one; where none can, what
//! was there before.

use std::collections::BTreeSet;

use jiff::SignedDuration;
use serde_json::{Value, json};

use super::scenario::Drawing;

/// Whose images a class asks for.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Publisher {
    /// EKS' own, by alias: a public parameter leads to the newest.
    Amazon,
    /// Our own account's, by name. A stranger's of the same names are found, too, and policy refuses them.
    Own,
}

/// How the new image comes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Arrival {
    /// It is there, and old enough.
    There,
    /// It is there, and will be old enough some minutes after the start.
    Ripens,
    Published,
}

/// What becomes of images while the life goes on.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Plot {
    Nothing,
    /// The new image is taken back in one of these words, and another follows if it may boot at once.
    TakenBack(&'static str),
    /// The new image is taken back in one of these words, and given again.
    GivenAgain(&'static str),
    /// A bad one comes, and soon after it a good one.
    Bad(&'static str),
    /// Another one comes, which is too young for the whole life.
    Young,
    /// A stranger's image of the family's name, newer than ours.
    Stranger,
    /// The parameter says what makes no sense, and later what it said before.
    Nonsense,
    /// The parameter goes back to the old image, and stays there.
    Back,
    /// It goes back, and forth again.
    BackAndForth,
}

pub(super) const STRANGER: &str = "444455556666";

/// By the last digit of their ids: the old one, the new one, the one after that, a bad one, a stranger's.
const VERSIONS: [(char, &str); 5] = [
    ('a', "v20260901"),
    ('b', "v20261101"),
    ('c', "v20261115"),
    ('d', "v20261108"),
    ('f', "v20261112"),
];

impl Plot {
    /// What fits the life: under a minimum age nothing that appears later ever boots in it.
    pub(super) fn draw(drawing: &mut Drawing) -> Self {
        let mut plots = vec![Self::Stranger];
        if drawing.publisher == Publisher::Amazon {
            plots.extend([Self::Nonsense, Self::Back, Self::BackAndForth]);
        }
        for word in ["deprecate", "disable", "deregister", "unshare"] {
            plots.push(Self::TakenBack(word));
        }
        plots.extend(["disable", "unshare"].map(Self::GivenAgain));
        if drawing.minimum_age.is_some() {
            plots.extend([Self::Young, Self::Young, Self::Young]);
        } else {
            plots.extend(["stillborn", "never-ready", "flapping"].map(Self::Bad));
        }
        let some = drawing.dice.chance(PLOTS_PER_MILLE);
        let plot = drawing.dice.pick(&plots).copied().unwrap_or(Self::Nothing);
        if some { plot } else { Self::Nothing }
    }
}

/// In so many lives of a thousand publishers do more than publish.
const PLOTS_PER_MILLE: u64 = 450;

fn minutes(count: u64) -> SignedDuration {
    SignedDuration::from_mins(i64::try_from(count).unwrap_or(0))
}

/// The images of one processor.
#[derive(Debug, Clone, Copy)]
pub(super) struct Line {
    /// As names have it.
    pub(super) processor: &'static str,
    /// As EC2 calls it.
    pub(super) architecture: &'static str,
    pub(super) digit: char,
    pub(super) publisher: Publisher,
}

impl Line {
    pub(super) fn name(self, digit: char) -> String {
        let version = VERSIONS.iter().find(|it| it.0 == digit).map_or("v0", |it| it.1);
        match self.publisher {
            Publisher::Amazon => {
                format!("amazon-eks-node-al2023-{}-standard-1.35-{version}", self.processor)
            }
            Publisher::Own => format!("golden-{}-{version}", self.processor),
        }
    }

    pub(super) fn id(self, digit: char) -> String {
        format!("ami-{}000000{digit}", self.digit)
    }

    fn pointer(self) -> String {
        format!(
            "/aws/service/eks/optimized-ami/1.35/amazon-linux-2023/{}/standard/recommended/image_id",
            self.processor
        )
    }

    fn publish(self, digit: char, more: &str) -> String {
        let (name, id) = (self.name(digit), self.id(digit));
        format!("publish {name} --id {id} --arch {}{more}", self.architecture)
    }

    fn image(self, digit: char, created: &str) -> Value {
        json!({
            "name": self.name(digit), "id": self.id(digit), "created": created,
            "architecture": self.architecture,
        })
    }
}

impl Drawing {
    /// The image that the nodes run, the one that they should, and whatever becomes of them.
    pub(super) fn publish(&mut self, line: Line) {
        let days = |count: i64| SignedDuration::from_hours(24 * count);
        let before =
            |age: SignedDuration| self.start.saturating_sub(age).unwrap_or(self.start).to_string();
        let (old, there) = (before(days(60)), before(days(10)));
        let ripens = before(days(7) - minutes(7));
        self.images.push(line.image('a', &old));
        match self.arrival {
            Arrival::There => self.images.push(line.image('b', &there)),
            Arrival::Ripens => self.images.push(line.image('b', &ripens)),
            Arrival::Published => {
                let at = self.dice.span(SignedDuration::from_secs(5), minutes(12));
                self.plan(at, &line.publish('b', ""));
            }
        }
        self.drawn.listed.extend([line.id('a'), line.id('b')]);
        let expected = self.goes_on(line);
        let ids: BTreeSet<String> = expected.iter().map(|it| line.id(*it)).collect();
        self.drawn.expected.entry("nodemolt.dev/general".to_owned()).or_default().extend(ids);
    }

    /// What happens to them; by the last digits of their ids, what is expected to run in the end.
    fn goes_on(&mut self, line: Line) -> Vec<char> {
        // Once the new image is there, and some nodes may run it.
        let first = minutes(self.dice.between(13, 40));
        let then = first + minutes(self.dice.between(2, 20));
        let follows = self.minimum_age.is_none();
        match self.plot {
            Plot::Nothing => vec!['b'],
            Plot::TakenBack(how) => {
                self.plan(first, &format!("{how} {}", line.id('b')));
                if follows {
                    self.plan(then, &line.publish('c', ""));
                    return vec!['c'];
                }
                // Where nothing newer may boot the publisher points to what was there before.
                if line.publisher == Publisher::Amazon {
                    self.plan(then, &format!("move {} {}", line.pointer(), line.id('a')));
                }
                vec!['a', 'b']
            }
            Plot::GivenAgain(how) => {
                self.plan(first, &format!("{how} {}", line.id('b')));
                self.plan(then, &format!("enable {}", line.id('b')));
                vec!['b']
            }
            Plot::Bad(how) => {
                self.plan(first, &line.publish('d', &format!(" --{how}")));
                self.plan(then, &line.publish('c', ""));
                vec!['c']
            }
            Plot::Young => {
                self.plan(first, &line.publish('c', ""));
                vec!['b']
            }
            Plot::Stranger => {
                // It has a parameter of its own, so that it takes nobody else's away.
                let more = format!(" --owner {STRANGER} --parameter /stranger/{}", line.processor);
                self.plan(first, &line.publish('f', &more));
                if line.publisher == Publisher::Amazon && self.owners {
                    self.plan(then, &format!("move {} {}", line.pointer(), line.id('f')));
                    let back = then + minutes(self.dice.between(2, 10));
                    self.plan(back, &format!("move {} {}", line.pointer(), line.id('b')));
                }
                vec!['b']
            }
            Plot::Nonsense => {
                let words = ["soon", "ami-0123456789abcdef0", "{\"image_id\": 7}"];
                let word = self.dice.pick(&words).copied().unwrap_or_default();
                self.plan(first, &format!("put {} {word}", line.pointer()));
                self.plan(then, &format!("move {} {}", line.pointer(), line.id('b')));
                vec!['b']
            }
            Plot::Back => {
                self.plan(first, &format!("move {} {}", line.pointer(), line.id('a')));
                vec!['a']
            }
            Plot::BackAndForth => {
                self.plan(first, &format!("move {} {}", line.pointer(), line.id('a')));
                self.plan(then, &format!("move {} {}", line.pointer(), line.id('b')));
                vec!['b']
            }
        }
    }

    fn plan(&mut self, at: SignedDuration, line: &str) {
        self.drawn.publishing.push((at, line.to_owned()));
    }
}
