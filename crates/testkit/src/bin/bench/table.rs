//! The one table that is printed in the end.

use crate::statistics::Rounds;

/// How a figure is written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Unit {
    PerSecond,
    Milliseconds,
    Microseconds,
    Kibibytes,
    Mebibytes,
    Bytes,
    Count,
}

/// What is wanted of a row. Ratios are Greenroom divided by the baseline.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Aim {
    None,
    RatioAtLeast(f64),
    RatioAtMost(f64),
    AtMost(f64),
    /// Greenroom less the baseline.
    AddsAtMost(f64),
}

#[derive(Clone, Debug)]
pub struct Row {
    pub what: String,
    pub unit: Unit,
    pub greenroom: Rounds,
    pub baseline: Option<(&'static str, Rounds)>,
    pub aim: Aim,
}

impl Row {
    pub fn new(what: impl Into<String>, unit: Unit, greenroom: Rounds) -> Self {
        Self { what: what.into(), unit, greenroom, baseline: None, aim: Aim::None }
    }

    #[must_use]
    pub fn against(mut self, name: &'static str, baseline: Rounds) -> Self {
        self.baseline = Some((name, baseline));
        self
    }

    #[must_use]
    pub fn aiming_at(mut self, aim: Aim) -> Self {
        self.aim = aim;
        self
    }

    fn ratio(&self) -> Option<Rounds> {
        self.baseline.as_ref().map(|(_, baseline)| self.greenroom.divided_by(baseline))
    }

    fn added(&self) -> Option<f64> {
        let (_, baseline) = self.baseline.as_ref()?;
        self.greenroom.minus(baseline).median()
    }

    fn is_met(&self) -> Option<bool> {
        let ratio = self.ratio().and_then(|ratio| ratio.median());
        let value = self.greenroom.median();
        match self.aim {
            Aim::None => None,
            Aim::RatioAtLeast(least) => Some(ratio.is_some_and(|ratio| ratio >= least)),
            Aim::RatioAtMost(most) => Some(ratio.is_some_and(|ratio| ratio <= most)),
            Aim::AtMost(most) => Some(value.is_some_and(|value| value <= most)),
            Aim::AddsAtMost(most) => Some(self.added().is_some_and(|added| added <= most)),
        }
    }

    fn written(&self) -> String {
        let unit = |value| written(value, self.unit);
        let greenroom = spread(&self.greenroom, unit);
        let baseline = match &self.baseline {
            Some((name, baseline)) => format!("{} {name}", spread(baseline, unit)),
            None => "–".into(),
        };
        let ratio = self.ratio().map_or_else(|| "–".into(), |ratio| spread(&ratio, times));
        let aim = match self.aim {
            Aim::None => "–".into(),
            Aim::RatioAtLeast(least) => format!("≥ {}", times(least)),
            Aim::RatioAtMost(most) => format!("≤ {}", times(most)),
            Aim::AtMost(most) => format!("≤ {}", unit(most)),
            Aim::AddsAtMost(most) => {
                format!("+ ≤ {} (+ {})", unit(most), self.added().map_or_else(|| "–".into(), unit))
            }
        };
        let met = match self.is_met() {
            None => "–",
            Some(true) => "yes",
            Some(false) => "**no**",
        };
        format!("| {} | {greenroom} | {baseline} | {ratio} | {aim} | {met} |", self.what)
    }
}

pub fn print(rows: &[Row]) {
    println!();
    println!("| what | Greenroom | baseline | ratio | aim | met |");
    println!("|---|---|---|---|---|---|");
    for row in rows {
        println!("{}", row.written());
    }
    println!();
    println!("Median of the rounds (least–greatest). A ratio is Greenroom divided by the baseline, round by round.");
}

fn spread(rounds: &Rounds, write: impl Fn(f64) -> String) -> String {
    match (rounds.median(), rounds.least(), rounds.greatest()) {
        (Some(median), Some(least), Some(greatest)) if write(least) == write(greatest) => write(median),
        (Some(median), Some(least), Some(greatest)) => {
            format!("{} ({}–{})", write(median), write(least), write(greatest))
        }
        _ => "not measured".into(),
    }
}

fn times(ratio: f64) -> String {
    format!("{}×", plain(ratio))
}

fn written(value: f64, unit: Unit) -> String {
    let text = plain(value);
    match unit {
        Unit::PerSecond => format!("{text}/s"),
        Unit::Milliseconds => format!("{text} ms"),
        Unit::Microseconds => format!("{text} µs"),
        Unit::Kibibytes => format!("{text} KiB"),
        Unit::Mebibytes => format!("{text} MiB"),
        Unit::Bytes => format!("{text} B"),
        Unit::Count => text,
    }
}

/// Three digits that mean something, thousands apart.
fn plain(value: f64) -> String {
    let decimals = match value.abs() {
        size if size >= 100.0 => 0,
        size if size >= 10.0 => 1,
        size if size >= 1.0 => 2,
        _ => 3,
    };
    let text = format!("{value:.decimals$}");
    match text.split_once('.') {
        Some((whole, fraction)) => format!("{}.{fraction}", grouped(whole)),
        None => grouped(&text),
    }
}

/// `1000000` as `1,000,000`.
pub fn grouped(digits: &str) -> String {
    let mut grouped = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

#[cfg(test)]
mod tests {
    use super::{Aim, Row, Unit};

    #[test]
    fn a_row_says_all() {
        let row = Row::new("tokens", Unit::PerSecond, [132_384.4, 120_000.0, 140_000.0].into_iter().collect())
            .against("one insert a token", [2_600.0, 2_400.0, 2_800.0].into_iter().collect())
            .aiming_at(Aim::RatioAtLeast(40.0));
        assert_eq!(
            row.written(),
            "| tokens | 132,384/s (120,000/s–140,000/s) | 2,600/s (2,400/s–2,800/s) one insert a token \
             | 50.0× (50.0×–50.9×) | ≥ 40.0× | yes |"
        );
        let row = Row::new("start", Unit::Milliseconds, [0.25].into_iter().collect()).aiming_at(Aim::AtMost(0.2));
        assert_eq!(row.written(), "| start | 0.250 ms | – | – | ≤ 0.200 ms | **no** |");
    }
}
