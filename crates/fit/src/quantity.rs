//! How much is `1500m`, and is it more than `1.5Gi`?
//!
//! `text ⇄ quantity`, a whole number of billionths
//!
//! The grammar is that of Kubernetes, and so are its two mercies: what is finer than a billionth is
//! rounded away from zero (who asks for some shall get some), and what is too large becomes the
//! largest there is. No floating point anywhere; `parse(display(x)) == x` for every quantity.

use std::{
    cmp::Ordering,
    fmt,
    hash::{Hash, Hasher},
    num::NonZeroU64,
    str::FromStr,
};

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

const NANOS_PER_UNIT: i128 = 1_000_000_000;
const NANOS_PER_MILLI: i128 = 1_000_000;

/// The same on both sides of zero, so that negating never overflows.
const NANOS_MAX: i128 = i128::MAX;

/// Kubernetes caps `Ki` to `Ei` here, in units. It does not cap the others.
const BINARY_UNITS_MAX: i128 = i64::MAX as i128;

/// Below this, in units, `Ki` to `Ei` would need a fraction; Kubernetes then writes `512`.
const BINARY_UNITS_MIN: i128 = 1024;

const DECIMAL: [(&str, i64); 10] = [
    ("n", -9),
    ("u", -6),
    ("m", -3),
    ("", 0),
    ("k", 3),
    ("M", 6),
    ("G", 9),
    ("T", 12),
    ("P", 15),
    ("E", 18),
];

const BINARY: [(&str, u32); 6] =
    [("Ki", 10), ("Mi", 20), ("Gi", 30), ("Ti", 40), ("Pi", 50), ("Ei", 60)];

/// An amount of a resource. Equal amounts are equal however they were written: `1Ki` is `1024`.
#[derive(Debug, Clone, Copy, Default)]
pub struct Quantity {
    nanos: i128, // Never below -NANOS_MAX.
    form: Form,
}

/// How it was written, to be written so again. No part of what it is worth.
#[derive(Debug, Clone, Copy, Default)]
enum Form {
    #[default]
    Decimal,
    Exponent,
    Binary,
}

impl Quantity {
    pub const ZERO: Self = Self { nanos: 0, form: Form::Decimal };

    pub fn from_units(units: i64) -> Self {
        Self { nanos: i128::from(units) * NANOS_PER_UNIT, form: Form::Decimal }
    }

    pub fn from_millis(millis: i64) -> Self {
        Self { nanos: i128::from(millis) * NANOS_PER_MILLI, form: Form::Decimal }
    }

    /// Like `from_units`, but shown in `Ki`, `Mi`, `Gi`.
    pub fn from_bytes(bytes: i64) -> Self {
        Self { nanos: i128::from(bytes) * NANOS_PER_UNIT, form: Form::Binary }
    }

    pub fn from_mebibytes(mebibytes: i64) -> Self {
        Self { nanos: (i128::from(mebibytes) << 20) * NANOS_PER_UNIT, form: Form::Binary }
    }

    pub fn from_gibibytes(gibibytes: i64) -> Self {
        Self { nanos: (i128::from(gibibytes) << 30) * NANOS_PER_UNIT, form: Form::Binary }
    }

    /// Decimal gigabytes, in which disks are sold.
    pub fn from_gigabytes(gigabytes: i64) -> Self {
        let nanos = i128::from(gigabytes) * 1_000_000_000 * NANOS_PER_UNIT;
        Self { nanos, form: Form::Decimal }
    }

    /// Whole units, rounded up: `1500m` is 2, `-1500m` is -1.
    pub fn ceil_units(self) -> i128 {
        ceil(self.nanos, NANOS_PER_UNIT)
    }

    /// Whole thousandths, rounded up.
    pub fn ceil_millis(self) -> i128 {
        ceil(self.nanos, NANOS_PER_MILLI)
    }

    pub fn negative(self) -> bool {
        self.nanos < 0
    }

    pub fn zero(self) -> bool {
        self.nanos == 0
    }

    /// `None` if the sum is too large to be held.
    pub fn checked_add(self, other: Self) -> Option<Self> {
        let nanos = self.nanos.checked_add(other.nanos).filter(|it| *it >= -NANOS_MAX)?;
        Some(Self { nanos, form: self.form_with(other) })
    }

    /// `None` if the difference is too large to be held.
    pub fn checked_sub(self, other: Self) -> Option<Self> {
        self.checked_add(other.negated())
    }

    /// The sum, or the largest quantity of its sign.
    #[must_use]
    pub fn saturating_add(self, other: Self) -> Self {
        Self {
            nanos: self.nanos.saturating_add(other.nanos).max(-NANOS_MAX),
            form: self.form_with(other),
        }
    }

    /// The difference, or the largest quantity of its sign.
    #[must_use]
    pub fn saturating_sub(self, other: Self) -> Self {
        self.saturating_add(other.negated())
    }

    /// What remains, and nothing if more was taken than there was.
    #[must_use]
    pub fn less(self, taken: Self) -> Self {
        self.saturating_sub(taken).max(Self { nanos: 0, form: self.form })
    }

    /// This many millionths of it, rounded up to whole units.
    #[must_use]
    pub fn share(self, millionths: u32) -> Self {
        const WHOLE: NonZeroU64 = NonZeroU64::new(1_000_000).expect("a million is not zero");
        let units = self.times_ceil(millionths.into(), WHOLE).ceil_units();
        let nanos = units.saturating_mul(NANOS_PER_UNIT).max(-NANOS_MAX);
        Self { nanos, form: self.form }
    }

    /// `self × numerator ∕ denominator`, rounded up to a billionth, or the largest of its sign.
    #[must_use]
    pub fn times_ceil(self, numerator: i64, denominator: NonZeroU64) -> Self {
        let (numerator, denominator) = (i128::from(numerator), i128::from(denominator.get()));
        // Divide first: what remains is below 2^64, so the second product fits where
        // `nanos × numerator` might not. The first product is whole and needs no rounding.
        let whole = self.nanos.div_euclid(denominator).saturating_mul(numerator);
        let rest = ceil(self.nanos.rem_euclid(denominator) * numerator, denominator);
        Self { nanos: whole.saturating_add(rest).max(-NANOS_MAX), form: self.form }
    }

    fn negated(self) -> Self {
        Self { nanos: -self.nanos, form: self.form }
    }

    /// Nothing has no form of its own: a total that starts at zero looks like what is added.
    fn form_with(self, other: Self) -> Form {
        if self.zero() { other.form } else { self.form }
    }
}

fn ceil(nanos: i128, per: i128) -> i128 {
    nanos.div_euclid(per) + i128::from(nanos.rem_euclid(per) != 0)
}

impl PartialEq for Quantity {
    fn eq(&self, other: &Self) -> bool {
        self.nanos == other.nanos
    }
}

impl Eq for Quantity {}

impl PartialOrd for Quantity {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Quantity {
    fn cmp(&self, other: &Self) -> Ordering {
        self.nanos.cmp(&other.nanos)
    }
}

impl Hash for Quantity {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.nanos.hash(state);
    }
}

/// The largest suffix that needs no fraction, as kubectl shows it: `1536Mi`, `1500m`, `2`.
impl fmt::Display for Quantity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.zero() {
            return f.write_str("0");
        }
        let units = self.nanos / NANOS_PER_UNIT;
        let binary = self.nanos % NANOS_PER_UNIT == 0
            && (BINARY_UNITS_MIN..=BINARY_UNITS_MAX).contains(&units.abs());
        match self.form {
            Form::Binary if binary => {
                let suffix = BINARY.iter().rev().find(|(_, power)| units % (1 << power) == 0);
                let (suffix, power) = suffix.copied().unwrap_or(("", 0));
                write!(f, "{}{suffix}", units / (1 << power))
            }
            Form::Decimal | Form::Binary | Form::Exponent => {
                let (mut mantissa, mut exponent) = (self.nanos, -9);
                while mantissa % 1000 == 0 {
                    mantissa /= 1000;
                    exponent += 3;
                }
                let named = DECIMAL.iter().find(|(_, it)| *it == exponent);
                match (self.form, named) {
                    (Form::Exponent, _) if exponent == 0 => write!(f, "{mantissa}"),
                    (Form::Exponent, _) | (_, None) => write!(f, "{mantissa}e{exponent}"),
                    (Form::Decimal | Form::Binary, Some((suffix, _))) => {
                        write!(f, "{mantissa}{suffix}")
                    }
                }
            }
        }
    }
}

/// Why a text is no quantity, and what to write instead.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ParseQuantityError {
    #[error(
        "`{text}` is not a quantity: write a number and a unit, such as `2`, `500m` or `1.5Gi`"
    )]
    NoNumber { text: String },
    #[error("`{text}` is not a quantity: there is no unit `{unit}`, write {instead}")]
    UnknownUnit { text: String, unit: String, instead: String },
}

impl FromStr for Quantity {
    type Err = ParseQuantityError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (negative, unsigned) = match text.strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, text.strip_prefix('+').unwrap_or(text)),
        };
        let (whole, rest) = digits(unsigned);
        let (fraction, unit) = rest.strip_prefix('.').map_or(("", rest), digits);
        if whole.is_empty() && fraction.is_empty() {
            return Err(ParseQuantityError::NoNumber { text: excerpt(text) });
        }
        let (magnitude, form) = match Unit::read(unit) {
            Some(Unit::Decimal(exponent)) => (decimal(whole, fraction, exponent), Form::Decimal),
            Some(Unit::Exponent(exponent)) => (decimal(whole, fraction, exponent), Form::Exponent),
            Some(Unit::Binary(power)) => (binary(whole, fraction, power), Form::Binary),
            None => {
                return Err(ParseQuantityError::UnknownUnit {
                    text: excerpt(text),
                    unit: excerpt(unit),
                    instead: instead_of(unit),
                });
            }
        };
        Ok(Self { nanos: if negative { -magnitude } else { magnitude }, form })
    }
}

enum Unit {
    Decimal(i64),
    Exponent(i64),
    Binary(u32),
}

impl Unit {
    fn read(text: &str) -> Option<Self> {
        // Before the exponents: `E` alone is exa.
        if let Some((_, exponent)) = DECIMAL.iter().find(|(it, _)| *it == text) {
            return Some(Self::Decimal(*exponent));
        }
        if let Some((_, power)) = BINARY.iter().find(|(it, _)| *it == text) {
            return Some(Self::Binary(*power));
        }
        let signed = text.strip_prefix(['e', 'E'])?;
        let unsigned = signed.strip_prefix(['-', '+']).unwrap_or(signed);
        let (all, rest) = digits(unsigned);
        if all.is_empty() || !rest.is_empty() {
            return None;
        }
        // What does not fit is beyond every number that could be held, on its side.
        let exponent = all.parse().unwrap_or(i64::MAX);
        Some(Self::Exponent(if signed.starts_with('-') { -exponent } else { exponent }))
    }
}

/// The digits at the beginning, and what follows.
fn digits(text: &str) -> (&str, &str) {
    let end = text.bytes().position(|it| !it.is_ascii_digit()).unwrap_or(text.len());
    text.split_at(end)
}

fn numbers(digits: &str) -> impl DoubleEndedIterator<Item = i128> {
    digits.bytes().map(|it| i128::from(it - b'0'))
}

/// `whole.fraction × 10^exponent` in nanos: the point moves, and the digits after it round up.
fn decimal(whole: &str, fraction: &str, exponent: i64) -> i128 {
    let mut rest = numbers(whole).chain(numbers(fraction)).skip_while(|it| *it == 0).peekable();
    if rest.peek().is_none() {
        return 0;
    }
    let zeroes = numbers(whole).chain(numbers(fraction)).take_while(|it| *it == 0).count();
    let before_point = length(whole.len()).saturating_sub(length(zeroes));
    let before_point = before_point.saturating_add(exponent).saturating_add(9);

    let mut nanos: i128 = 0;
    for _ in 0..before_point {
        nanos = nanos.saturating_mul(10).saturating_add(rest.next().unwrap_or(0));
        if nanos == NANOS_MAX {
            return nanos;
        }
    }
    nanos.saturating_add(i128::from(rest.any(|it| it != 0)))
}

/// `whole.fraction × 2^power` in nanos, at most what Kubernetes allows.
fn binary(whole: &str, fraction: &str, power: u32) -> i128 {
    let factor = NANOS_PER_UNIT << power;
    let whole = numbers(whole)
        .fold(0_i128, |sum, digit| sum.saturating_mul(10).saturating_add(digit))
        .saturating_mul(factor);
    // From the last digit to the first: each is worth a tenth of the one before. What a step drops
    // is below one nano and stays so, hence it is enough to know whether anything was dropped.
    let (part, dropped) = numbers(fraction).rev().fold((0, false), |(part, dropped), digit| {
        let sum = digit * factor + part;
        (sum / 10, dropped || sum % 10 != 0)
    });
    whole
        .saturating_add(part)
        .saturating_add(i128::from(dropped))
        .min(BINARY_UNITS_MAX * NANOS_PER_UNIT)
}

fn length(of: usize) -> i64 {
    i64::try_from(of).unwrap_or(i64::MAX)
}

/// An error shall not be longer than what a person reads.
fn excerpt(text: &str) -> String {
    const SHOWN: usize = 40;
    match text.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// `GB`, `K`, `gi` and ` Gi` are the usual slips.
fn instead_of(unit: &str) -> String {
    let stem = unit.trim().trim_end_matches(['b', 'B']).trim_end_matches(['i', 'I']);
    let mut near = DECIMAL
        .iter()
        .map(|(it, _)| *it)
        .chain(BINARY.iter().map(|(it, _)| *it))
        .filter(|it| !it.is_empty() && it.trim_end_matches('i').eq_ignore_ascii_case(stem))
        .map(|it| format!("`{it}`"))
        .collect::<Vec<_>>();
    if near.is_empty() {
        near = ["m", "k", "M", "G", "Ki", "Mi", "Gi"].map(|it| format!("`{it}`")).into();
    }
    match near.pop() {
        Some(last) if near.is_empty() => last,
        Some(last) => format!("{} or {last}", near.join(", ")),
        None => String::new(),
    }
}

impl Serialize for Quantity {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// From text, or from a bare number as in `cpu: 2`.
impl<'de> Deserialize<'de> for Quantity {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(QuantityVisitor)
    }
}

struct QuantityVisitor;

impl de::Visitor<'_> for QuantityVisitor {
    type Value = Quantity;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a quantity such as `500m` or `1Gi`")
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Quantity, E> {
        text.parse().map_err(E::custom)
    }

    fn visit_i64<E: de::Error>(self, number: i64) -> Result<Quantity, E> {
        Ok(Quantity::from_units(number))
    }

    fn visit_u64<E: de::Error>(self, number: u64) -> Result<Quantity, E> {
        Ok(Quantity { nanos: i128::from(number) * NANOS_PER_UNIT, form: Form::Decimal })
    }

    // The reader made it a float before we saw it. Its shortest text is what was written.
    fn visit_f64<E: de::Error>(self, number: f64) -> Result<Quantity, E> {
        number.to_string().parse().map_err(E::custom)
    }
}
