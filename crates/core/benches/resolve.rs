//! How long does it take to answer a thousand classes, and how does that grow with the catalog?
//!
//! `cargo bench -p nodemolt-core --bench resolve`, with `-- --check` to fail where a target is missed,
//! and `-- --digest` to print a fingerprint of all answers instead: what makes resolving faster must not
//! change it. `-- 100000` measures that size only, for a profiler. See docs/benchmarks.md.

#[path = "resolve/classes.rs"]
mod classes;
#[path = "resolve/dice.rs"]
mod dice;
#[path = "resolve/world.rs"]
mod world;

use std::collections::BTreeMap;
use std::fmt::{self, Write as _};
use std::process::ExitCode;
use std::time::Duration;

use nodemolt_core::policy::Policy;
use nodemolt_core::resolve::{Machines, Resolution, Setting, TypesAsked, resolve};
use nodemolt_fit::{Family, Types, Vocabulary};

use classes::{CLASSES, Class};
use world::World;

const SIZES: [usize; 3] = [10_000, 30_000, 100_000];

/// Other programs on the machine only ever add to the time: the quickest of a few tries is the nearest.
const TRIES: usize = 5;

const SLOPE_MAX: f64 = 1.1;
const TOTAL_MAX: Duration = Duration::from_secs(1);

fn main() -> ExitCode {
    #[expect(
        clippy::disallowed_methods,
        reason = "a program beside the pure crate, not a part of it"
    )]
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let told = |word: &str| arguments.iter().any(|it| it == word);
    let known = |it: &&String| ["--bench", "--check", "--digest"].contains(&it.as_str());
    let sizes: Result<Vec<usize>, _> =
        arguments.iter().filter(|it| !known(it)).map(|it| it.parse()).collect();
    let sizes = match sizes {
        Ok(sizes) if sizes.is_empty() => SIZES.to_vec(),
        Ok(sizes) => sizes,
        Err(error) => {
            eprintln!("cannot read the arguments: {error}; write --check, --digest or sizes");
            return ExitCode::from(64);
        }
    };

    let machines = machines();
    if told("--digest") {
        for images in sizes {
            println!("{images:>7} images: {:016x}", digest(&world::world(images), &machines));
        }
        return ExitCode::SUCCESS;
    }
    let measured: Vec<Measured> =
        sizes.iter().map(|it| measure(&world::world(*it), &machines)).collect();
    println!("{}", table(&measured));
    let passed = judge(&measured);
    if told("--check") && !passed { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}

type PerFamily = BTreeMap<Family, Machines>;

fn machines() -> PerFamily {
    [
        Family::Al2,
        Family::Al2023,
        Family::Bottlerocket,
        Family::Windows2019,
        Family::Windows2022,
        Family::Windows2025,
        Family::Custom,
    ]
    .into_iter()
    .map(|family| (family, Machines::new(Types::shipped(), family)))
    .collect()
}

fn setting<'a>(class: &Class, machines: &'a PerFamily) -> Setting<'a> {
    Setting {
        kubernetes: Some(class.kubernetes),
        account: world::OWN.parse().ok(),
        machines: &machines[&class.ask.family],
        types: TypesAsked::Any,
        pools: class.pools.clone(),
        in_use: class.in_use.clone(),
    }
}

/// One size's figures.
struct Measured {
    images: usize,
    index: Duration,
    /// Of each class, sorted.
    classes: Vec<Duration>,
    candidates: usize,
    chosen: usize,
    answered: usize,
}

impl Measured {
    fn resolve(&self) -> Duration {
        self.classes.iter().sum()
    }

    fn total(&self) -> Duration {
        self.index + self.resolve()
    }

    fn quantile(&self, of_hundred: usize) -> Duration {
        let last = self.classes.len() - 1;
        self.classes[last * of_hundred / 100]
    }
}

fn measure(world: &World, machines: &PerFamily) -> Measured {
    let classes = classes::classes(world);
    let policy = classes::policy(world);
    (0..TRIES)
        .map(|_| try_once(world, &classes, &policy, machines))
        .min_by_key(Measured::total)
        .expect("it was tried")
}

/// A class's time begins with its setting and ends when its answer has been put away again.
fn try_once(world: &World, classes: &[Class], policy: &Policy, machines: &PerFamily) -> Measured {
    let started = clock::now();
    let index = world.catalog.index(world.now);
    let mut measured = Measured {
        images: world.catalog.images.len(),
        index: clock::now().saturating_sub(started),
        classes: Vec::with_capacity(classes.len()),
        candidates: 0,
        chosen: 0,
        answered: 0,
    };
    for class in classes {
        let started = clock::now();
        let setting = setting(class, machines);
        let resolution = resolve(&index, &class.ask, policy, &setting);
        measured.candidates += resolution.terms.iter().map(|it| it.verdicts.len()).sum::<usize>();
        measured.chosen += resolution.chosen.len();
        measured.answered += usize::from(!resolution.chosen.is_empty());
        drop(resolution);
        measured.classes.push(clock::now().saturating_sub(started));
    }
    measured.classes.sort_unstable();
    measured
}

fn table(measured: &[Measured]) -> String {
    let mut text = format!(
        "{CLASSES} classes, {} instance types, one thread, {}; the quickest of {TRIES} tries\n\n",
        Types::shipped().len(),
        clock::NAME,
    );
    text.push_str(
        " images     index   resolve     total  median/class       p99       max  candidates/class  chosen/class  with an image\n",
    );
    for it in measured {
        writeln!(
            text,
            "{:>7} {:>9} {:>9} {:>9} {:>13} {:>9} {:>9} {:>17.1} {:>13.2} {:>14}",
            it.images,
            shown(it.index),
            shown(it.resolve()),
            shown(it.total()),
            shown(it.quantile(50)),
            shown(it.quantile(99)),
            shown(it.quantile(100)),
            per_class(it.candidates),
            per_class(it.chosen),
            it.answered,
        )
        .expect("a string takes all that is written to it");
    }
    text
}

#[expect(clippy::cast_precision_loss, reason = "a mean for people, of small numbers")]
fn per_class(number: usize) -> f64 {
    number as f64 / CLASSES as f64
}

fn shown(time: Duration) -> String {
    format!("{:.3}ms", time.as_secs_f64() * 1e3)
}

/// Prints how the figures stand to the targets.
fn judge(measured: &[Measured]) -> bool {
    let word = |passed: bool| if passed { "pass" } else { "miss" };
    let slope = slope(measured);
    let flat = measured.len() > 1 && slope <= SLOPE_MAX;
    println!("{}: log-log slope of the total {slope:.3}, at most {SLOPE_MAX}", word(flat));
    let Some(largest) = measured.last() else { return false };
    let (total, images) = (largest.total(), largest.images);
    let quick = total < TOTAL_MAX;
    println!(
        "{}: {} in all at {images} images, below {}",
        word(quick),
        shown(total),
        shown(TOTAL_MAX)
    );
    flat && quick
}

/// Least squares over the logarithms: 1 where ten times the images take ten times as long.
#[expect(clippy::cast_precision_loss, reason = "sizes are small numbers")]
fn slope(measured: &[Measured]) -> f64 {
    let points: Vec<(f64, f64)> = measured
        .iter()
        .map(|it| ((it.images as f64).ln(), it.total().as_secs_f64().max(1e-9).ln()))
        .collect();
    let number = points.len() as f64;
    let mean_x = points.iter().map(|it| it.0).sum::<f64>() / number;
    let mean_y = points.iter().map(|it| it.1).sum::<f64>() / number;
    let above: f64 = points.iter().map(|(x, y)| (x - mean_x) * (y - mean_y)).sum();
    let below: f64 = points.iter().map(|(x, _)| (x - mean_x).powi(2)).sum();
    above / below
}

/// A fingerprint of every answer, in words: numbers of the vocabulary follow the order of asking and
/// mean nothing. Two pictures of one world must agree.
fn digest(world: &World, machines: &PerFamily) -> u64 {
    let index = world.catalog.index(world.now);
    let policy = classes::policy(world);
    let mut fingerprint = Fingerprint(0xcbf2_9ce4_8422_2325);
    for class in classes::classes(world) {
        let setting = setting(&class, machines);
        let resolution = resolve(&index, &class.ask, &policy, &setting);
        tell(&mut fingerprint, &resolution, &setting.machines.vocabulary)
            .expect("a fingerprint takes all that is written to it");
    }
    fingerprint.0
}

fn tell(out: &mut Fingerprint, resolution: &Resolution, vocabulary: &Vocabulary) -> fmt::Result {
    for it in &resolution.chosen {
        let requirements = it.requirements.written(vocabulary);
        let said = (&it.id, &it.name, &it.version, it.dated, &it.terms, it.deprecated);
        write!(out, "{said:?} {requirements:?} {:?}", (&it.hardware, it.only_in_use, &it.next))?;
    }
    for it in &resolution.held {
        let requirements = it.requirements.written(vocabulary);
        write!(out, "{:?} {requirements:?}", (&it.hardware, &it.id, &it.refusal, &it.next))?;
    }
    write!(out, "{:?} {:?}", resolution.refused, resolution.terms)?;
    write!(out, "{:?} {:?}", resolution.types, resolution.warnings)?;
    write!(out, "{:?}", resolution.minimum_age)
}

/// FNV-1a.
struct Fingerprint(u64);

impl fmt::Write for Fingerprint {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.0 = text
            .bytes()
            .fold(self.0, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3));
        Ok(())
    }
}

#[cfg(unix)]
mod clock {
    use std::time::Duration;

    use rustix::time::{ClockId, clock_gettime};

    pub(crate) const NAME: &str = "time on the processor";

    pub(crate) fn now() -> Duration {
        let time = clock_gettime(ClockId::ThreadCPUTime);
        let nanoseconds = u32::try_from(time.tv_nsec).unwrap_or(0);
        Duration::new(u64::try_from(time.tv_sec).unwrap_or(0), nanoseconds)
    }
}

#[cfg(not(unix))]
#[expect(clippy::disallowed_types, reason = "a program beside the pure crate, not a part of it")]
mod clock {
    use std::sync::LazyLock;
    use std::time::{Duration, Instant};

    pub(crate) const NAME: &str = "time on the wall";

    static START: LazyLock<Instant> = LazyLock::new(Instant::now);

    pub(crate) fn now() -> Duration {
        START.elapsed()
    }
}
