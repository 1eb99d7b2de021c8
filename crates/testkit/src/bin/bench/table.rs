//! The result tables, one per part.

use crate::statistics::Rounds;

/// The unit of a figure.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FigureUnit {
    PerSecond,
    Milliseconds,
    Microseconds,
    Kibibytes,
    Mebibytes,
    /// A million bytes.
    Megabytes,
    Bytes,
    Count,
}

/// The target of a row. Ratios are Greenroom divided by the baseline.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Aim {
    None,
    RatioAtLeast(f64),
    RatioAtMost(f64),
    AtMost(f64),
    /// Greenroom minus the baseline.
    AddsAtMost(f64),
}

#[derive(Clone, Debug)]
pub struct FigureRow {
    pub name: String,
    pub unit: FigureUnit,
    pub greenroom: Rounds,
    pub baseline: Option<(&'static str, Rounds)>,
    pub aim: Aim,
}

impl FigureRow {
    pub fn new(what: impl Into<String>, unit: FigureUnit, greenroom: Rounds) -> Self {
        Self { name: what.into(), unit, greenroom, baseline: None, aim: Aim::None }
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

    fn to_markdown(&self) -> String {
        let unit = |value| with_unit(value, self.unit);
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
        format!("| {} | {greenroom} | {baseline} | {ratio} | {aim} | {met} |", self.name)
    }
}

/// One row per line, without a line end after the last.
pub fn to_markdown(rows: &[FigureRow]) -> String {
    let mut lines =
        vec!["| what | Greenroom | baseline | ratio | aim | met |".to_owned(), "|---|---|---|---|---|---|".to_owned()];
    lines.extend(rows.iter().map(FigureRow::to_markdown));
    lines.join("\n")
}

fn spread(rounds: &Rounds, write: impl Fn(f64) -> String) -> String {
    match (rounds.median(), rounds.min(), rounds.max()) {
        (Some(median), Some(least), Some(greatest)) if write(least) == write(greatest) => write(median),
        (Some(median), Some(least), Some(greatest)) => {
            format!("{} ({}–{})", write(median), write(least), write(greatest))
        }
        _ => "not measured".into(),
    }
}

fn times(ratio: f64) -> String {
    format!("{}×", three_digits(ratio))
}

fn with_unit(value: f64, unit: FigureUnit) -> String {
    let text = three_digits(value);
    match unit {
        FigureUnit::PerSecond => format!("{text}/s"),
        FigureUnit::Milliseconds => format!("{text} ms"),
        FigureUnit::Microseconds => format!("{text} µs"),
        FigureUnit::Kibibytes => format!("{text} KiB"),
        FigureUnit::Mebibytes => format!("{text} MiB"),
        FigureUnit::Megabytes => format!("{text} MB"),
        FigureUnit::Bytes => format!("{text} B"),
        FigureUnit::Count => text,
    }
}

/// Formats three significant digits, with thousands separators.
fn three_digits(value: f64) -> String {
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

/// Formats `1000000` as `1,000,000`.
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
    use super::{Aim, FigureRow, FigureUnit};

    #[test]
    fn row_as_markdown() {
        let row =
            FigureRow::new("tokens", FigureUnit::PerSecond, [132_384.4, 120_000.0, 140_000.0].into_iter().collect())
                .against("one insert a token", [2_600.0, 2_400.0, 2_800.0].into_iter().collect())
                .aiming_at(Aim::RatioAtLeast(40.0));
        assert_eq!(
            row.to_markdown(),
            "| tokens | 132,384/s (120,000/s–140,000/s) | 2,600/s (2,400/s–2,800/s) one insert a token \
             | 50.0× (50.0×–50.9×) | ≥ 40.0× | yes |"
        );
        let row =
            FigureRow::new("start", FigureUnit::Milliseconds, [0.25].into_iter().collect()).aiming_at(Aim::AtMost(0.2));
        assert_eq!(row.to_markdown(), "| start | 0.250 ms | – | – | ≤ 0.200 ms | **no** |");
    }
}
